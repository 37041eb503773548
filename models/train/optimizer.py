"""Muon for the matrices, AdamW for the rest.

Muon replaces a matrix's momentum by the nearest orthogonal matrix. It is known to need fewer
tokens than AdamW alone, which on two cores is what counts; on this data we have not compared them."""
import torch


def orthogonal(stack, steps=5):
    """Newton-Schulz over a stack of equal matrices; the constants are the method's usual ones."""
    tall = stack.shape[-2] > stack.shape[-1]
    x = stack.transpose(-1, -2) if tall else stack
    x = x / (x.norm(dim=(-1, -2), keepdim=True) + 1e-7)
    for _ in range(steps):
        square = x @ x.transpose(-1, -2)
        square = torch.baddbmm(square, square, square, beta=-4.7750, alpha=2.0315)
        x = torch.baddbmm(x, square, x, beta=3.4445)
    return x.transpose(-1, -2) if tall else x


class Muon(torch.optim.Optimizer):
    def __init__(self, params, lr, momentum=0.95, decay=0.01):
        super().__init__(params, dict(lr=lr, momentum=momentum, decay=decay))

    def wanted(self, p, momentum):
        """The gradient after its momentum."""
        mean = self.state[p].setdefault("mean", torch.zeros_like(p))
        mean.lerp_(p.grad, 1 - momentum)
        return p.grad.lerp(mean, momentum)

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for shape in sorted({p.shape for p in group["params"]}):
                params = [p for p in group["params"] if p.shape == shape]
                # Every update moves an output by about the same, whatever the matrix's form.
                scale = max(1, shape[0] / shape[1]) ** 0.5
                updates = orthogonal(torch.stack([self.wanted(p, group["momentum"])
                                                  for p in params]))
                for p, update in zip(params, updates):
                    p.mul_(1 - group["lr"] * group["decay"])
                    p.add_(update, alpha=-group["lr"] * scale)


class Both:
    """The two optimizers behind one step; `factor` scales both learning rates."""

    def __init__(self, model, matrix_lr, other_lr):
        matrices = [p for n, p in model.named_parameters() if p.dim() == 2 and "embed" not in n]
        others = [p for n, p in model.named_parameters() if p.dim() != 2 or "embed" in n]
        self.parts = [Muon(matrices, matrix_lr),
                      torch.optim.AdamW(others, other_lr, betas=(0.9, 0.98), weight_decay=0.01)]
        self.rates = [matrix_lr, other_lr]

    def step(self, factor):
        for part, rate in zip(self.parts, self.rates):
            for group in part.param_groups:
                group["lr"] = rate * factor
            part.step()
            part.zero_grad(set_to_none=True)

    def state_dict(self):
        return [part.state_dict() for part in self.parts]

    def load_state_dict(self, states):
        for part, state in zip(self.parts, states):
            part.load_state_dict(state)
