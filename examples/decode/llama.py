"""A Llama whose linear layers are computed in several ways side by side, for smollm2.py: Model holds the weights, Run a KV
cache and the decode step of one way at one batch, on CUDA as a graph. See smollm2.py for what the ways are."""

import torch
import torch.nn.functional as F

WAYS = ("torch", "bf16", "torch_dq", "nvfp4")
GEMVJIT_WAYS = ("bf16", "nvfp4")
PARTS = {"qkv": ("attn_q", "attn_k", "attn_v"), "o": ("attn_output",), "gate_up": ("ffn_gate", "ffn_up"),
         "down": ("ffn_down",)}
SWAPPED = "0.down"  # the layer that is wrong in the ways "bf16_swapped" and "nvfp4_swapped"


class Dense:
    """F.linear in the weight's type, in the place of a gemvjit.torch.Linear."""

    def __init__(self, weight, silu_mul):
        self.weight, self.silu_mul = weight, silu_mul

    def buffers(self):
        return [self.weight]

    def __call__(self, x):
        y = F.linear(x, self.weight)
        if not self.silu_mul:
            return y
        gate, up = y.chunk(2, dim=-1)
        return F.silu(gate) * up


class Model:
    """What all ways share, and for each way its linear layers by name: "0.qkv", ..., "head"."""

    def __init__(self, checkpoint, ways, device):
        self.config, self.device = checkpoint.config, device
        tensors = {name: torch.from_numpy(array).bfloat16().to(device) for name, array in checkpoint.tensors.items()}
        self.embedding, self.last_norm = tensors["token_embd.weight"], tensors["output_norm.weight"]
        self.norms = [[tensors[f"blk.{i}.{name}_norm.weight"] for name in ("attn", "ffn")]
                      for i in range(self.config.layers)]
        weights = {f"{i}.{part}": torch.cat([tensors[f"blk.{i}.{name}.weight"] for name in names])
                   for i in range(self.config.layers) for part, names in PARTS.items()}
        tied = checkpoint.tensors["output.weight"] is checkpoint.tensors["token_embd.weight"]
        weights["head"] = self.embedding if tied else tensors["output.weight"]
        self.linears = {"float32": self._dense(weights, torch.float32), "torch": self._dense(weights, torch.bfloat16)}
        self._add_gemvjit(weights, ways)

    @staticmethod
    def _dense(weights, dtype):
        return {name: Dense(weight.to(dtype), name.endswith("gate_up")) for name, weight in weights.items()}

    def _add_gemvjit(self, weights, ways):
        if set(ways) == {"torch"}:
            return
        import gemvjit.torch
        make = gemvjit.torch.Linear
        bf16 = {name: make.from_bf16(weight, silu_mul=name.endswith("gate_up")) for name, weight in weights.items()}
        if "bf16" in ways:
            self._add(bf16, "bf16", make.from_bf16(weights[SWAPPED].roll(1, dims=0)))
        if set(ways) & {"torch_dq", "nvfp4"}:
            # The head stays BF16, as in most quantized checkpoints: here it is the embedding, too.
            quantized = {name: gemvjit.quantize_nvfp4(weight) for name, weight in weights.items() if name != "head"}
            exact = {name: gemvjit.dequantize_nvfp4(*of).float() for name, of in quantized.items()}
            for way in ("float32", "torch"):
                layers = self._dense(exact, torch.float32 if way == "float32" else torch.bfloat16)
                self.linears[f"{way}_dq"] = {**layers, "head": self.linears[way]["head"]}
        if "nvfp4" in ways:
            nvfp4 = {name: make.from_nvfp4(*of, "row_major", silu_mul=name.endswith("gate_up"))
                     for name, of in quantized.items()}
            codes, *scales = quantized[SWAPPED]
            self._add({**nvfp4, "head": bf16["head"]}, "nvfp4",
                      make.from_nvfp4(codes << 4 | codes >> 4, *scales, "row_major"))
        if self.device.type == "cuda" and set(ways) & set(GEMVJIT_WAYS):
            every = [linear for way in GEMVJIT_WAYS if way in ways
                     for linear in (*self.linears[way].values(), self.linears[f"{way}_swapped"][SWAPPED])]
            # None of these shapes was measured: the configuration of a similar one is taken.
            gemvjit.torch.warmup(torch.nn.ModuleList(every), allow_untuned=True)
            torch.cuda.synchronize()
            gemvjit.seal()

    def _add(self, linears, way, swapped):
        self.linears[way], self.linears[f"{way}_swapped"] = linears, {**linears, SWAPPED: swapped}

    def weight_bytes(self, way):
        """Of the linear layers, and of the embedding where that is not the head's own tensor."""
        tensors = [self.embedding, *(buffer for linear in self.linears[way].values() for buffer in linear.buffers())]
        return sum({tensor.data_ptr(): tensor.numel() * tensor.element_size() for tensor in tensors}.values())


class Run:
    """One way at one batch: KV cache, token buffers and the step, on CUDA as a graph. All sequences are at the same
    position; a sequence reads `forced` where that is not negative, else what it chose before."""

    def __init__(self, model, way, batch, positions):
        self.model, self.way, self.linears = model, way, model.linears[way]
        self.dtype = torch.float32 if way.startswith("float32") else torch.bfloat16
        config, device = model.config, model.device
        self.places = -(-positions // 64) * 64
        shape = (config.layers, batch, config.kv_heads, self.places, config.head)
        self.keys, self.values = (torch.zeros(shape, dtype=self.dtype, device=device) for _ in range(2))
        self.position = torch.zeros(1, dtype=torch.long, device=device)
        self.forced, self.chosen = (torch.zeros((batch, positions), dtype=torch.long, device=device) for _ in range(2))
        self.last = torch.zeros(batch, dtype=torch.long, device=device)
        self.at = torch.arange(self.places, device=device)
        angles = self.at[:, None].double() / config.rope_base ** (
            torch.arange(0, config.head, 2, device=device).double() / config.head)
        self.turns = torch.polar(torch.ones_like(angles), angles).to(torch.complex64)
        self.graph = self.logits = None
        if device.type == "cuda":
            self._capture()

    def _capture(self):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):
                self._step()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._step()
        self.graph = graph

    def start(self, forced):
        self.forced.copy_(forced)
        self.position.zero_()

    def step(self):
        self.graph.replay() if self.graph else self._step()

    def _step(self):
        forced = self.forced.index_select(1, self.position).squeeze(1)
        self.logits = self._forward(torch.where(forced >= 0, forced, self.last))
        self.last.copy_(self.logits.argmax(-1))
        self.chosen.index_copy_(1, self.position, self.last[:, None])
        self.position.add_(1)

    def _forward(self, tokens):
        config, batch, linears = self.model.config, tokens.shape[0], self.linears
        rows, group = (config.heads + config.kv_heads) * config.head, config.heads // config.kv_heads
        turn = self.turns.index_select(0, self.position)
        mask = torch.zeros(self.places, dtype=self.dtype, device=tokens.device)
        mask = mask.masked_fill(self.at > self.position, -torch.inf).expand(batch, 1, group, self.places)
        x = self.model.embedding[tokens].to(self.dtype)
        for i, (attention_norm, mlp_norm) in enumerate(self.model.norms):
            qk, v = linears[f"{i}.qkv"](self._norm(x, attention_norm)).split((rows, config.kv_heads * config.head), -1)
            # The order of rows in a GGUF file: neighbours are turned.
            pairs = torch.view_as_complex(qk.float().view(batch, -1, config.head // 2, 2))
            qk = torch.view_as_real(pairs * turn).view(batch, -1, config.head).to(self.dtype)
            q, k = qk.split((config.heads, config.kv_heads), 1)
            self.keys[i].index_copy_(2, self.position, k.unsqueeze(2))
            self.values[i].index_copy_(2, self.position, v.view(batch, config.kv_heads, 1, config.head))
            y = F.scaled_dot_product_attention(q.reshape(batch, config.kv_heads, group, config.head), self.keys[i],
                                               self.values[i], attn_mask=mask)
            x = x + linears[f"{i}.o"](y.reshape(batch, config.hidden))
            x = x + linears[f"{i}.down"](linears[f"{i}.gate_up"](self._norm(x, mlp_norm)))
        return linears["head"](self._norm(x, self.model.last_norm))

    def _norm(self, x, weight):
        return F.rms_norm(x, weight.shape, weight.to(x.dtype), self.model.config.epsilon)
