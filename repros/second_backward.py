# /// script
# requires-python = ">=3.10"
# dependencies = ["torch", "numpy"]
#
# [tool.harness]
# device = "any"
# timeout = 120
#
# [tool.harness.params]
# case = "two-layers"
#
# [tool.harness.subjects.torch]
# hold = ["numpy<2.3"]
#
# [tool.harness.signature]
# exception = "RuntimeError"
# message = "has been modified by an inplace operation"
#
# [tool.harness.cases.single-linear]
# params = {}
#
# [tool.harness.cases.two-layers]
# params = {}
#
# [tool.harness.cases.two-layers-recomputed]
# params = {}
#
# [tool.harness.cases.two-graphs]
# params = {}
# [tool.harness.cases.two-graphs.signature]
# exception = "RuntimeError"
# message = "backward through the graph a second time"
#
# [tool.harness.cases.shared-forward]
# params = {}
# [tool.harness.cases.shared-forward.signature]
# exception = "RuntimeError"
# message = "backward through the graph a second time"
#
# [tool.harness.cases.shared-forward-retained]
# params = {}
# [tool.harness.cases.shared-forward-retained.signature]
# exception = "RuntimeError"
# message = "backward through the graph a second time"
#
# [tool.harness.cases.freed-graph]
# params = {}
# [tool.harness.cases.freed-graph.signature]
# exception = "RuntimeError"
# message = "backward through the graph a second time"
#
# [tool.harness.cases.detached-gradients]
# params = {}
# [tool.harness.cases.detached-gradients.signature]
# exception = "RuntimeError"
# message = "backward through the graph a second time"
# ///
"""Which second backward passes torch allows: three examples from an article, and their limits.

The article says that `retain_graph=True` makes a second `backward` work. It keeps the graph's saved tensors
alive, but not unchanged: an optimizer step in between changes the weights that the graph saved, and torch
notices. A single layer is unaffected, because the gradient of its weights needs only the input.

`HARNESS_PARAMS` accepts `seed` and `case`. Each case checks its claim, by gradients where it mentions them,
and raises ValueError if the claim is false.

* `single-linear`: example 1, an optimizer step between two passes over one linear layer, works. Both passes
  give the same gradient: the second one still uses the old weights.
* `two-layers` (default): example 1 with a second layer raises "modified by an inplace operation".
* `two-layers-recomputed`: the fix, a new forward after the step, works and gives a new gradient.
* `two-graphs`: example 2 without `retain_graph` works and gives the gradient of the sum of both losses,
  because each of its two forwards makes its own graph.
* `shared-forward`: two losses on one forward need it: raises "backward through the graph a second time".
* `shared-forward-retained`: the same with `retain_graph=True` works, and so does the backward of the sum.
* `freed-graph`: two backwards of one loss without it raise "backward through the graph a second time".
* `detached-gradients`: example 3, applying the gradient again after a step, works. That is not a second
  backward: the gradient at the new weights is different.

The metrics of a case that works are loss and grad_norm.
"""

import json
import os
from pathlib import Path

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
measure = nn.MSELoss()


def linear():
    """One layer: the model of examples 1 and 3 in the article."""
    return nn.Linear(10, 1).to(DEVICE)


def stack():
    """Two layers: the model of example 2 in the article."""
    return nn.Sequential(nn.Linear(10, 5), nn.ReLU(), nn.Linear(5, 1)).to(DEVICE)


def sgd(model):
    """The optimizer of examples 1 and 3; its step changes the weights in place."""
    return torch.optim.SGD(model.parameters(), lr=0.01)


def sample(*shape):
    """A random tensor on the device."""
    return torch.randn(*shape).to(DEVICE)


def gradients(model):
    """A flat copy of the model's gradients."""
    return torch.cat([weight.grad.flatten() for weight in model.parameters()]).clone()


def check(*, claim, holds):
    """Raise ValueError where a claim does not hold."""
    if not holds:
        raise ValueError(f"this does not hold: {claim}")


def numbers(loss, gradient):
    """The metrics of a case that works."""
    return {"loss": loss.item(), "grad_norm": gradient.norm().item()}


def step_between_passes(model):
    """Run example 1: a retained backward, a step, and a second backward on the same graph.

    Returns the second pass's numbers, after checking that it repeats the first gradient.
    """
    optimizer = sgd(model)
    loss = measure(model(sample(1, 10)), sample(1, 1))
    loss.backward(retain_graph=True)
    first = gradients(model)
    optimizer.step()
    optimizer.zero_grad()
    loss.backward()
    second = gradients(model)
    check(claim="the second pass gives the gradient of the old weights", holds=torch.equal(first, second))
    optimizer.step()
    return numbers(loss, second)


def single_linear():
    """Example 1 as the article has it."""
    return step_between_passes(linear())


def two_layers():
    """Example 1 with the model of example 2: the first layer's gradient needs the second one's old weights."""
    return step_between_passes(stack())


def two_layers_recomputed():
    """A second forward after the step, in place of a retained graph."""
    model = stack()
    optimizer = sgd(model)
    x, y = sample(1, 10), sample(1, 1)
    measure(model(x), y).backward()
    first = gradients(model)
    optimizer.step()
    optimizer.zero_grad()
    loss = measure(model(x), y)
    loss.backward()
    second = gradients(model)
    check(claim="the gradient at the new weights is a new one", holds=not torch.equal(first, second))
    return numbers(loss, second)


def two_losses(*, shared, retain_graph):
    """Run example 2: two losses on one forward or on one each, back-propagated one after the other.

    Returns its numbers, after checking the accumulated gradient against that of the losses' sum.
    """
    model = stack()
    x, y1, y2 = sample(1, 10), sample(1, 1), sample(1, 1)
    (measure(model(x), y1) + measure(model(x), y2)).backward()
    expected = gradients(model)
    model.zero_grad()

    output1 = model(x)
    output2 = output1 if shared else model(x)
    loss1, loss2 = measure(output1, y1), measure(output2, y2)
    loss1.backward(retain_graph=retain_graph)
    loss2.backward()
    got = gradients(model)
    check(claim="two passes add up to the gradient of the sum", holds=torch.allclose(got, expected))
    torch.optim.Adam(model.parameters(), lr=0.001).step()
    return numbers(loss1 + loss2, got)


def two_graphs():
    """Example 2 without the argument that the article calls essential."""
    return two_losses(shared=False, retain_graph=False)


def shared_forward():
    """Two losses on one output, whose first pass frees what the second one needs."""
    return two_losses(shared=True, retain_graph=False)


def shared_forward_retained():
    """Two losses on one output with a retained graph, where the argument is of use."""
    return two_losses(shared=True, retain_graph=True)


def freed_graph():
    """The failure that the article sets out from."""
    model = linear()
    loss = measure(model(sample(1, 10)), sample(1, 1))
    loss.backward()
    loss.backward()
    return numbers(loss, gradients(model))


def detached_gradients():
    """Example 3: the gradient of the first pass is kept and applied in two steps."""
    model = linear()
    optimizer = sgd(model)
    x, y = sample(1, 10), sample(1, 1)
    before = nn.utils.parameters_to_vector(model.parameters()).detach().clone()
    loss = measure(model(x), y)
    loss.backward()
    kept = [weight.grad.clone().detach() for weight in model.parameters()]
    first = gradients(model)
    optimizer.step()
    optimizer.zero_grad()
    for weight, gradient in zip(model.parameters(), kept, strict=True):
        weight.grad = gradient
    optimizer.step()
    after = nn.utils.parameters_to_vector(model.parameters()).detach()
    check(claim="two steps go along one gradient", holds=torch.allclose(before - after, 2 * 0.01 * first, atol=1e-6))

    optimizer.zero_grad()
    measure(model(x), y).backward()
    check(claim="a real second pass has another gradient", holds=not torch.allclose(gradients(model), first))
    return numbers(loss, first)


CASES = {
    "single-linear": single_linear,
    "two-layers": two_layers,
    "two-layers-recomputed": two_layers_recomputed,
    "two-graphs": two_graphs,
    "shared-forward": shared_forward,
    "shared-forward-retained": shared_forward_retained,
    "freed-graph": freed_graph,
    "detached-gradients": detached_gradients,
}


def main():
    """Run the case named by `HARNESS_PARAMS`, and write its metrics to the file named by `HARNESS_METRICS`."""
    params = {"case": "two-layers", "seed": 3407, **json.loads(os.environ.get("HARNESS_PARAMS") or "{}")}
    case, seed = params.pop("case"), params.pop("seed")
    if params or case not in CASES:
        raise ValueError(f"parameters are seed and case, one of {', '.join(CASES)}; got {case!r} and {params}")
    torch.manual_seed(seed)
    metrics = CASES[case]()
    print(json.dumps(metrics))
    if path := os.environ.get("HARNESS_METRICS"):
        Path(path).write_text(json.dumps(metrics), encoding="utf-8")


if __name__ == "__main__":
    main()
