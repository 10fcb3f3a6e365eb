# SPDX-License-Identifier: Apache-2.0
"""One program of a mix: mix_worker.py KIND [--seed N] [--layers N]; it is told by lines on stdin when to work, and answers lines of JSON.

go BEGIN T0 T1 ROUND PATTERN CPU: works from BEGIN on (CLOCK_MONOTONIC, ns), counts what is done from T0 to T1, goes on for 0.3 s, so that
a neighbour's window is not easier, and answers. ROUND: the same pauses and cells again for the same number. PATTERN: seconds of work and
of sleep in turn, 0: no sleep. CPU: of the launching thread, -1: any. quit: ends. Between its windows it is idle, its memory kept.

decoder: eager, 1.1 billion parameters, requests one after the other, 256 tokens in, 32 out. graph: one token of a small one as a CUDA graph,
requests of 4 when they are due. notebook: cells that wait for the GPU every 4 ms, and pauses. train: ResNet-50. data_train: the same, waits
for data before each step. small_train: bound by launches. fps30: a frame of 50 kernels each 33 ms. long_kernels, saturate: 20 ms and 1 ms.
Sizes are constants, for an H200: what is measured at the start would be measured beside neighbours.
"""

import argparse
import bisect
import collections
import gc
import json
import os
import random
import statistics
import sys
import time

import torch

OVER = int(0.3e9)
LATE = int(2e9)  # who is this late gives a request up: an open loop beyond what the GPU can do has no latency
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"  # sizes must be small then: for a look at the code
now = time.monotonic_ns


def sleep_until(ns):
    while (left := ns - now()) > 0:
        time.sleep(left / 1e9)


def wait():
    """Not cudaDeviceSynchronize: that is where mix_record.py tells units apart."""
    torch.cuda.current_stream().synchronize()


def ms(values):
    return [round(v / 1e6, 3) for v in values]


def rate(stamps, t0, t1):
    """Units a second; stamps: when it began, then the end of each. The units at both ends of the window count in part."""
    def done(at):
        i = bisect.bisect_right(stamps, at)
        if i == 0 or i == len(stamps):
            return max(0, i - 1)
        return i - 1 + (at - stamps[i - 1]) / (stamps[i] - stamps[i - 1])

    return (done(t1) - done(t0)) * 1e9 / (t1 - t0)


class Kind:
    units = 1  # of what is counted, in one work()
    unit = "steps/s"
    flight = 1  # work()s under way at once; 1: work() itself waits
    period = 0  # ns between requests that are due; 0: one after the other

    def __init__(self, options):
        self.seed = options.seed

    def work(self):
        raise NotImplementedError

    def warm(self):
        for _ in range(5):
            self.work()

    def run(self, begin, t0, t1, dice, pattern):
        """Work after work, `flight` of them under way."""
        stamps, flights = [now()], collections.deque()

        def land():
            flights.popleft().synchronize()
            stamps.append(now())

        while now() < t1 + OVER:
            self.pause(dice)
            self.work()
            if self.flight == 1:
                stamps.append(now())
                continue
            flights.append(torch.cuda.Event())
            flights[-1].record()
            if len(flights) > self.flight:
                land()
        while flights:
            land()
        return {"speed": rate(stamps, t0, t1) * self.units, "unit": self.unit}

    def pause(self, dice):
        pass


class Due(Kind):
    """Requests that are due at their times; late ones queue."""

    def run(self, begin, t0, t1, dice, pattern):
        latencies, after, due, lost = [], [], begin, 0
        while due < t1 + OVER:
            sleep_until(due)
            if now() - due > LATE:
                done, waited = due + LATE, None
                lost += t0 <= due < t1
            else:
                waited = self.work()
                done = now()
            if t0 <= due < t1:
                latencies.append(done - due)
                if waited is not None:
                    after.append(waited)
            due += self.period
        return {**self.judge(latencies), "lost": lost, "request_ms": ms(latencies), "after_ms": ms(after)}

    def judge(self, latencies):
        return {"speed": 1e9 / statistics.median(latencies), "unit": "/s by p50"}


def llama(layers):
    import transformers

    small = DEVICE == "cpu"
    config = transformers.LlamaConfig(
        hidden_size=128 if small else 2048, intermediate_size=256 if small else 8192, num_hidden_layers=layers, num_attention_heads=16,
        num_key_value_heads=8, vocab_size=32000, max_position_embeddings=2048, attn_implementation="sdpa")
    kept = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        with torch.device(DEVICE):
            return transformers.LlamaForCausalLM(config).eval().requires_grad_(False)
    finally:
        torch.set_default_dtype(kept)


class Decoder(Kind):
    unit = "tokens/s"
    PROMPT, TOKENS = 256, 32

    def __init__(self, options):
        super().__init__(options)
        from transformers import DynamicCache
        self.new_cache = DynamicCache
        self.model = llama(options.layers or 16)
        self.prompt = torch.randint(0, 32000, (1, self.PROMPT), device=DEVICE)
        self.left = 0

    def warm(self):
        for _ in range(2 * self.TOKENS):
            self.work()

    @torch.inference_mode()
    def work(self):
        """A token; the first one of a request reads the prompt. Gives the time from the return of the last launch to the token."""
        if self.left == 0:
            self.cache, self.ids, self.left = self.new_cache(), self.prompt, self.TOKENS
        logits = self.model(input_ids=self.ids, past_key_values=self.cache, use_cache=True, logits_to_keep=1).logits
        self.ids = logits[:, -1].argmax(-1, keepdim=True)
        launched = now()
        self.ids.item()
        self.left -= 1
        return now() - launched

    def run(self, begin, t0, t1, dice, pattern):
        every, tokens, after, prompts, requests, first = [], [], [], [], [], []
        turn, self.left = None, 0  # not in the middle of a request
        while (start := now()) < t1 + OVER:
            if pattern:
                this, into = divmod(start - begin, int(2 * pattern * 1e9))
                if into >= pattern * 1e9:
                    sleep_until(min(begin + int((this + 1) * 2 * pattern * 1e9), t1 + OVER))
                    continue
                woken, turn = turn != this, this
            for i in range(self.TOKENS):
                asked = now()
                waited = self.work()
                done = now()
                if t0 <= asked and done <= t1:
                    every.append(done - asked)
                    (tokens if i else prompts).append(done - asked)
                    if i:  # the first one's wait is for the whole prompt
                        after.append(waited)
                if done > t1 + OVER:
                    break
            else:
                if t0 <= start and done <= t1:
                    requests.append(done - start)
                    if pattern and woken:
                        first.append(done - start)
        return {"speed": len(every) * 1e9 / sum(every) if every else 0.0, "unit": self.unit, "token_ms": ms(tokens), "after_ms": ms(after),
                "prompt_ms": ms(prompts), "request_ms": ms(requests), "first_ms": ms(first)}


class Graph(Due):
    """Four replays a request: on the stock driver, beside three that fill the GPU, each of them waits for three slices."""
    REPLAYS = 4
    period = int(40e6)

    @torch.inference_mode()
    def __init__(self, options):
        super().__init__(options)
        model = llama(options.layers or 4)
        self.model = model
        self.token = torch.zeros(1, 1, dtype=torch.long, device=DEVICE)
        place = torch.full((1, 1), 256, dtype=torch.long, device=DEVICE)

        def step():
            # Layer by layer: what LlamaModel does besides looks at tensors on the host, which a capture forbids.
            hidden = model.model.embed_tokens(self.token)
            angles = model.model.rotary_emb(hidden, place)
            for layer in model.model.layers:
                hidden = layer(hidden, attention_mask=None, position_ids=place, position_embeddings=angles)
                hidden = hidden[0] if isinstance(hidden, tuple) else hidden
            self.token.copy_(model.lm_head(model.model.norm(hidden))[:, -1].argmax(-1, keepdim=True))

        self.step = step
        if DEVICE == "cpu":
            return
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                step()
        torch.cuda.synchronize()
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured):
            step()
        self.captured, self.step = captured, captured.replay

    @torch.inference_mode()
    def work(self):
        """A request; gives the longest time from the return of a launch to its token."""
        most = 0
        for _ in range(self.REPLAYS):
            self.step()
            launched = now()
            self.token.item()
            most = max(most, now() - launched)
        return most


def half(*shape):
    return torch.randn(*shape, device=DEVICE, dtype=torch.half)


def side(big):
    return big if DEVICE == "cuda" else 64


class Notebook(Kind):
    unit = "chunks/s"
    PRODUCTS, CHUNK = 20, 0.0038  # 0.19 ms each

    def __init__(self, options):
        super().__init__(options)
        self.a = half(side(4096), side(4096))
        self.b = torch.empty_like(self.a)

    def work(self):
        for _ in range(self.PRODUCTS):
            torch.mm(self.a, self.a, out=self.b)
        wait()

    def cells(self, dice):
        """Chunks of a cell, ns of the pause after it."""
        while True:
            yield round(dice.uniform(0.1, 0.6) / self.CHUNK), int(dice.uniform(0.5, 3) * 1e9)

    def run(self, begin, t0, t1, dice, pattern):
        found = []
        sleep_until(begin + int(dice.uniform(0, 1) * 1e9))
        for chunks, pause in self.cells(dice):
            start = now()
            for _ in range(chunks):
                self.work()
                if now() > t1 + OVER:
                    break
            done = now()
            if t0 <= start and done <= t1:
                found.append((chunks, done - start))
            if done + pause > t1 + OVER:
                break
            sleep_until(done + pause)
        each = [time / chunks for chunks, time in found]
        return {"speed": 1e9 / statistics.median(each) if each else 0.0, "unit": self.unit,
                "cells": [(chunks, round(time / 1e6, 2)) for chunks, time in found]}


class Train(Kind):
    units = batch = 64
    unit = "images/s"
    flight = 2

    def __init__(self, options):
        super().__init__(options)
        import torchvision

        if DEVICE == "cpu":
            self.batch = 2
        size = 224 if DEVICE == "cuda" else 32
        self.model = torchvision.models.resnet50(weights=None).to(DEVICE, torch.bfloat16, memory_format=torch.channels_last)
        self.sgd = torch.optim.SGD(self.model.parameters(), lr=1e-3, momentum=0.9, fused=DEVICE == "cuda")
        self.x = torch.randn(self.batch, 3, size, size, device=DEVICE, dtype=torch.bfloat16).to(memory_format=torch.channels_last)
        self.y = torch.randint(0, 1000, (self.batch,), device=DEVICE)

    def work(self):
        self.sgd.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(self.model(self.x), self.y)
        loss.backward()
        self.sgd.step()
        return loss


class DataTrain(Train):
    units, unit, flight = 1, "steps/s", 1
    batch = 160  # 55 ms

    def work(self):
        super().work().item()

    def pause(self, dice):
        time.sleep(dice.uniform(0.03, 0.06))


class SmallTrain(Kind):
    units = STEPS = 10

    def __init__(self, options):
        super().__init__(options)
        layer = torch.nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True, norm_first=True)
        self.model = torch.nn.TransformerEncoder(layer, 12, enable_nested_tensor=False).to(DEVICE)
        self.adam = torch.optim.Adam(self.model.parameters(), lr=1e-4, foreach=False)
        self.x = torch.randn(32, 32, 256, device=DEVICE)

    def warm(self):
        self.work()

    def step(self):
        self.adam.zero_grad(set_to_none=True)
        loss = (self.model(self.x) - self.x).pow(2).mean()
        loss.backward()
        self.adam.step()
        return loss

    def work(self):
        for _ in range(self.STEPS):
            loss = self.step()
        loss.item()


class Fps30(Due):
    KERNELS = 50  # 0.1 ms each
    period = int(1e9 / 30)

    def __init__(self, options):
        super().__init__(options)
        self.a, self.w = half(side(2048), side(4096)), half(side(4096), side(4096))
        self.b = torch.empty_like(self.a)

    def work(self):
        for _ in range(self.KERNELS):
            torch.mm(self.a, self.w, out=self.b)
        launched = now()
        wait()
        return now() - launched

    def judge(self, latencies):
        return {"speed": sum(t <= self.period for t in latencies) / max(1, len(latencies)), "unit": "in time"}


class Saturate(Kind):
    unit = "kernels/s"
    flight = 3
    size = 7168

    def __init__(self, options):
        super().__init__(options)
        self.a = half(side(self.size), side(self.size))
        self.b = torch.empty_like(self.a)

    def work(self):
        torch.mm(self.a, self.a, out=self.b)


class LongKernels(Saturate):
    flight = 2
    size = 19456


KINDS = {"decoder": Decoder, "graph": Graph, "notebook": Notebook, "train": Train, "data_train": DataTrain, "small_train": SmallTrain,
         "fps30": Fps30, "long_kernels": LongKernels, "saturate": Saturate}


def parse(words):
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--layers", type=int, default=0)
    return parser.parse_args(words)


def ready(options):
    """The program, all that happens once behind it."""
    torch.set_num_threads(1)
    torch.backends.cudnn.benchmark = False
    torch.backends.mha.set_fastpath_enabled(False)  # one way for all of its versions
    torch.manual_seed(options.seed)
    program = KINDS[options.kind](options)
    program.warm()
    torch.cuda.synchronize()
    gc.collect()
    gc.freeze()
    return program


def main():
    options = parse(sys.argv[1:])
    program = ready(options)
    print(json.dumps({"ready": torch.__version__, "mib": torch.cuda.memory_reserved() >> 20}), flush=True)
    for line in sys.stdin:
        word, *numbers = line.split()
        if word == "quit":
            break
        begin, t0, t1, number = map(int, numbers[:4])
        pattern, core = float(numbers[4]), numbers[5]
        try:
            if core != "-":
                for thread in os.listdir("/proc/self/task"):
                    os.sched_setaffinity(int(thread), set(map(int, core.split(","))))
            sleep_until(begin)
            answer = program.run(begin, t0, t1, random.Random(f"{options.kind} {options.seed} {number}"), pattern)
            torch.cuda.synchronize()
        except Exception as error:
            answer = {"failed": f"{options.kind}: {type(error).__name__}: {error}"[:300]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
