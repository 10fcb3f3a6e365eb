# SPDX-License-Identifier: Apache-2.0
"""A PyTorch program that does as it is told: a word and its numbers on stdin, one line of JSON back.

matmul S W, graph S W, train S W, lm S W: so many seconds W of warm-up, then S that count, then some more, so that a neighbour's
seconds are not easier; answers units a second. serve S W G: a request each 20 ms, G = 1: as a CUDA graph; answers latencies from
when they were due, what of them came after the last launch, and the slowest: all, woken late, launching. fill: takes memory until
there is none, gives it back, goes on. train and lm are sized so that the GPU is what they wait for: many times longer a step than its
launches take the host.
"""

import json
import sys
import time

import torch

DEVICE = "cuda"
OVER = 0.6  # seconds past the end


class Chunks:
    """Two chunks of work are always under way; the rate is of those done within the window, from the first to the last."""

    def __init__(self, seconds, warm, chunk, units):
        begin = time.monotonic() + warm
        end, done, flights = begin + seconds, [], []
        while time.monotonic() < end + OVER:
            chunk()
            event = torch.cuda.Event()
            event.record()
            flights.append(event)
            if len(flights) > 2:
                flights.pop(0).synchronize()
                now = time.monotonic()
                if begin <= now < end:
                    done.append(now)
        torch.cuda.synchronize()
        self.rate = (len(done) - 1) * units / (done[-1] - done[0]) if len(done) > 2 else 0.0


def matmul(seconds, warm):
    a = torch.randn(4096, 4096, device=DEVICE, dtype=torch.half)

    def chunk():
        for _ in range(5):
            torch.mm(a, a)

    return {"rate": Chunks(seconds, warm, chunk, 5).rate}


def graph(seconds, warm):
    a = torch.randn(4096, 4096, device=DEVICE, dtype=torch.half)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.mm(a, a)
    torch.cuda.synchronize()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        b = a
        for _ in range(5):
            b = torch.relu(torch.mm(b, a) * 0.01)
    return {"rate": Chunks(seconds, warm, captured.replay, 5).rate}


class Training:
    def __init__(self):
        self.model = torch.nn.Sequential(*[torch.nn.Linear(4096, 4096) for _ in range(6)]).to(DEVICE)
        self.adam = torch.optim.Adam(self.model.parameters(), lr=3e-5)
        self.x = torch.randn(16384, 4096, device=DEVICE, dtype=torch.bfloat16)
        self.loss = None

    def step(self):
        self.adam.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, torch.bfloat16):
            self.loss = (self.model(self.x) - self.x).pow(2).mean(dtype=torch.float)
        self.loss.backward()
        self.adam.step()


def train(seconds, warm):
    training = Training()
    training.step()
    first = training.loss.item()
    rate = Chunks(seconds, warm, training.step, 1).rate
    return {"rate": rate, "first_loss": first, "loss": training.loss.item()}


def transformer(layers, width):
    layer = torch.nn.TransformerEncoderLayer(width, 16, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
    return torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False).to(DEVICE, torch.bfloat16)


def lm(seconds, warm):
    model = transformer(8, 2048)
    adam = torch.optim.Adam(model.parameters(), lr=1e-5)
    x = torch.randn(16, 512, 2048, device=DEVICE, dtype=torch.bfloat16)

    def step():
        adam.zero_grad(set_to_none=True)
        (model(x) - x).float().pow(2).mean().backward()
        adam.step()

    return {"rate": Chunks(seconds, warm, step, 1).rate}


@torch.inference_mode()
def serve(seconds, warm, by_graph):
    model = transformer(6, 1024).eval()
    x = torch.randn(1, 128, 1024, device=DEVICE, dtype=torch.bfloat16)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(10):
            model(x)
    torch.cuda.synchronize()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        total = model(x).sum()

    def launch():
        if by_graph:
            captured.replay()
            return total
        return model(x).sum()

    next_at = time.monotonic()
    begin, latencies, busy = next_at + warm, [], 0.0
    while next_at < begin + seconds:
        pause = next_at - time.monotonic()
        if pause > 0:
            time.sleep(pause)
        asked = time.monotonic()
        result = launch()
        launched = time.monotonic()
        result.item()
        done = time.monotonic()
        if next_at >= begin:
            latencies.append((1e3 * (done - next_at), 1e3 * (asked - next_at), 1e3 * (launched - asked)))
            busy += done - asked
        next_at += 0.02
    latencies.sort()
    after = sorted(total - late - launch for total, late, launch in latencies)
    pick = lambda of, q: of[min(len(of) - 1, int(q * len(of)))]  # noqa: E731
    p50, p99 = (pick(latencies, q)[0] for q in (0.5, 0.99))
    return {"requests": len(latencies), "p50_ms": p50, "p99_ms": p99, "max_ms": latencies[-1][0],
            "after_p50_ms": pick(after, 0.5), "after_p99_ms": pick(after, 0.99), "slowest": latencies[:-9:-1], "busy": busy / (0.02 * len(latencies))}


def fill():
    keep, error = [], None
    try:
        while len(keep) < 4096:
            keep.append(torch.empty(64 << 20, dtype=torch.uint8, device=DEVICE))
    except torch.OutOfMemoryError as caught:
        error = str(caught).split(".")[0]
    held = len(keep) * 64
    print(json.dumps({"held_mib": held, "error": error}), flush=True)
    sys.stdin.readline()  # the runner looks at the ledger
    keep.clear()
    torch.cuda.empty_cache()
    training = Training()
    for _ in range(3):
        training.step()
    return {"goes_on": training.loss.item()}


def main():
    torch.backends.mha.set_fastpath_enabled(False)  # one way for all of its versions
    torch.zeros(1, device=DEVICE)
    print(json.dumps({"ready": torch.__version__, "memory": torch.cuda.mem_get_info()}), flush=True)
    for line in sys.stdin:
        word, *numbers = line.split()
        if word == "quit":
            break
        try:
            answer = globals()[word](*map(float, numbers))
            torch.cuda.empty_cache()
        except Exception as error:
            answer = {"failed": f"{word}: {type(error).__name__}: {error}"[:300]}
        print(json.dumps(answer), flush=True)


main()
