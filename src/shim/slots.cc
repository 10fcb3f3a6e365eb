// SPDX-License-Identifier: Apache-2.0

#include "shim/slots.h"

#include <string.h>

#include "shim/sys.h"
#include "wire/messages.h"

// libc's, looked up at run time: null in a process that has none.
extern "C" __attribute__((weak, visibility("default"))) char** environ;

namespace rondo::shim {
namespace {

constexpr char kRunDir[] = "/run/rondo";

// Appends to a bounded string; false (and no change) where it does not fit.
struct Text {
  char* data;
  size_t room;
  size_t size = 0;

  bool Add(const char* s, size_t n) {
    if (n >= room - size) return false;
    memcpy(data + size, s, n);
    size += n;
    data[size] = '\0';
    return true;
  }
  bool Add(const char* s) { return Add(s, strlen(s)); }
};

bool AddSlot(const char* uuid, size_t uuid_size, const char* number,
             size_t number_size, const char* run_dir, Slots* out) {
  if (out->count == kMaxSlots || uuid_size == 0) return false;
  Slot* slot = &out->slot[out->count];
  Text name{slot->uuid, sizeof slot->uuid};
  Text path{slot->socket, sizeof slot->socket};
  if (!name.Add(uuid, uuid_size) || !path.Add(run_dir) || !path.Add("/") ||
      !path.Add(uuid, uuid_size) || !path.Add("-") ||
      !path.Add(number, number_size) || !path.Add("/") ||
      !path.Add(wire::kSocketName)) {
    return false;
  }
  ++out->count;
  return true;
}

// What follows `prefix` in `text`; null where it does not begin so.
const char* After(const char* text, const char* prefix) {
  for (; *prefix != '\0'; ++text, ++prefix) {
    if (*text != *prefix) return nullptr;
  }
  return text;
}

const char* Env(const char* name_and_equals) {
  if (&environ == nullptr || environ == nullptr) return nullptr;
  for (char** e = environ; *e != nullptr; ++e) {
    const char* value = After(*e, name_and_equals);
    if (value != nullptr) return value;
  }
  return nullptr;
}

void ReadFolder(const char* run_dir, Slots* out) {
  const int fd = static_cast<int>(
      sys::Call(SYS_openat, AT_FDCWD, run_dir,
                O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK, 0));
  if (fd < 0) return;
  alignas(8) char entries[4096];
  for (;;) {
    const long n = sys::Call(SYS_getdents64, fd, entries, sizeof entries);
    if (n <= 0) break;
    for (long at = 0; at < n;) {
      // struct linux_dirent64: ino, off (8 each), reclen u16, type u8, name.
      uint16_t length;
      memcpy(&length, entries + at + 16, sizeof length);
      AddSlotOfFolder(entries + at + 19, run_dir, out);
      at += length;
    }
  }
  sys::Close(fd);
  // A pod sees its own slots only. Several of one GPU: this is the node's
  // folder or a choice that is not ours to make.
  for (uint32_t i = 1; i < out->count; ++i) {
    for (uint32_t j = 0; j < i; ++j) {
      if (strcmp(out->slot[i].uuid, out->slot[j].uuid) == 0) out->count = 0;
    }
  }
}

}  // namespace

void ParseSlots(const char* text, const char* run_dir, Slots* out) {
  while (*text != '\0') {
    size_t end = 0;
    while (text[end] != '\0' && text[end] != ',') ++end;
    for (size_t i = 0; i + 1 < end; ++i) {
      if (text[i] != ':' || text[i + 1] != ':') continue;
      AddSlot(text, i, text + i + 2, end - i - 2, run_dir, out);
      break;
    }
    text += end + (text[end] == ',' ? 1 : 0);
  }
}

bool AddSlotOfFolder(const char* name, const char* run_dir, Slots* out) {
  size_t size = strlen(name), dash = size;
  while (dash > 0 && name[dash - 1] >= '0' && name[dash - 1] <= '9') --dash;
  if (dash == size || dash < 5 || name[dash - 1] != '-') return false;
  if (After(name, "GPU-") == nullptr && After(name, "MIG-") == nullptr) {
    return false;
  }
  return AddSlot(name, dash - 1, name + dash, size - dash, run_dir, out);
}

void ReadSlots(Slots* out) {
  const char* run_dir = Env("RONDO_RUN_DIR=");
  if (run_dir == nullptr || *run_dir == '\0') run_dir = kRunDir;
  out->count = 0;
  const char* slots = Env("RONDO_SLOTS=");
  if (slots != nullptr) {
    ParseSlots(slots, run_dir, out);
  } else {
    ReadFolder(run_dir, out);
  }
}

uint32_t SlotsOfGpu(const Slots& slots, const char* uuid) {
  uint32_t mask = 0;
  for (uint32_t i = 0; i < slots.count; ++i) {
    if (strcmp(slots.slot[i].uuid, uuid) == 0) mask |= 1u << i;
  }
  if (mask == 0 && slots.count == 1 &&
      After(slots.slot[0].uuid, "MIG-") != nullptr) {
    mask = 1;
  }
  return mask;
}

}  // namespace rondo::shim
