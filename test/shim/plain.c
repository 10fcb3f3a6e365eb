// SPDX-License-Identifier: Apache-2.0
//
// A program that knows nothing of GPUs: what it prints and how it ends is to be
// the same with and without librondo.so. Built for glibc and musl, dynamic and
// static.

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void* Work(void* arg) {
  void* p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(p, 7, 1 << 20);
  return munmap(p, 1 << 20) == 0 ? arg : NULL;
}

static void Try(int fd, const char* what, unsigned request) {
  char buffer[4096] = {0};
  errno = 0;
  const int result = ioctl(fd, request, buffer);
  printf("%s: %d, errno %d\n", what, result, errno);
}

int main(void) {
  const int fd = open("/dev/null", O_RDWR);
  Try(fd, "window size", TIOCGWINSZ);
  Try(fd, "frame buffer", 0x4600);
  // The driver's own requests, on something that is not the driver: this arms
  // the shim, and ioctl's second parameter is an int in musl.
  Try(fd, "version", 0xc04846d2);
  Try(fd, "alloc", 0xc030462b);
  Try(fd, "free", 0xc0104629);
  Try(-1, "bad descriptor", 0xc030462b);
  printf("null argument: %d\n", ioctl(fd, 0xc030462b, NULL));
  pthread_t thread;
  void* done = NULL;
  if (pthread_create(&thread, NULL, Work, &done) == 0) {
    pthread_join(thread, &done);
  }
  printf("thread: %s\n", done != NULL ? "done" : "failed");
  void* bad = mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  printf("mmap of nothing: %d, errno %d\n", bad == MAP_FAILED, errno);
  printf("munmap askew: %d, errno %d\n", munmap((void*)1, 4096), errno);
  void* at = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  void* over = mmap(at, 4096, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  printf("map over: %d\n", over == at);
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    Try(fd, "child", 0xc030462b);
    exit(7);
  }
  int status = 0;
  waitpid(child, &status, 0);
  printf("child: %d\n", WEXITSTATUS(status));
  printf("lowest descriptor: %d\n", open("/dev/null", O_RDONLY));
  return 3;
}
