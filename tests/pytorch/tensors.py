"""Properties of tensors on a simulated device, each a function; prints what fails, by name.

Run under gpusim, by `test_tensors.py`.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
from __future__ import annotations

import copy
import json
import threading
import traceback

import pytest
import torch

GPU = torch.device("cuda", 0)


def made(*size, **options):
    return torch.randn(*size, device="cuda", **options)


def on(*tensors) -> bool:
    return all(one.is_cuda and one.device == GPU and not one.is_cpu for one in tensors)


def factories_take_the_device():
    assert on(
        torch.zeros(3, device="cuda"), torch.arange(5, device="cuda:0"), torch.eye(2, device=GPU)
    )
    assert on(torch.tensor([1, 2], device="cuda"), torch.full((2,), 1.0, device=GPU))
    assert on(torch.randint(0, 5, (3,), device="cuda"), torch.randperm(4, device="cuda"))
    assert not torch.zeros(3).is_cuda


def factories_of_another_tensor_stay_with_it():
    x = made(3)
    assert on(torch.zeros_like(x), x.new_zeros(2), torch.empty_like(x), x.new_tensor([1.0]))
    assert on(torch.rand_like(x), torch.as_tensor(x))


def views_share_memory():
    x = made(4, 4)
    column = x[:, 0]
    column[1:].fill_(7)
    assert x[2, 0].item() == 7
    assert on(column, x.t(), x.reshape(16), x[None], *x.chunk(2))


def operations_in_place_keep_the_address():
    x = torch.ones(3, device="cuda")
    place = x.data_ptr()
    x.add_(1).mul_(2)
    x[0] = 5
    assert x.data_ptr() == place
    assert x.tolist() == [5, 4, 4]


def results_lie_with_their_operands():
    a, b = made(3, 4), made(4, 5)
    assert on(a @ b, a.sum(), torch.softmax(a, 1), a > 0, *a.max(1), torch.cat([a, a]), a.half())
    assert not (torch.ones(2) + 1).is_cuda


def composed_operations_lie_with_their_operands():
    """PyTorch makes their intermediate tensors on the device that C++ sees, the CPU."""
    x = torch.tensor([1, 0, 2], device="cuda")
    hot = torch.nn.functional.one_hot(x)
    assert on(hot, torch.nn.functional.cross_entropy(made(3, 4), x))
    assert hot.tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 1]]
    assert on(
        made(3, 3).tril(), torch.where(made(2) > 0, 1.0, 2.0), made(8).std(), made(4).type_as(x)
    )
    a = made(2, 2, 8, 4)
    assert on(torch.nn.functional.scaled_dot_product_attention(a, a, a, is_causal=True))


def empty_tensors_have_a_device():
    x = torch.empty(0, device="cuda")
    assert on(x, torch.cat([x, x]), made(3)[3:], made(2, 0))


def copies_go_and_come_back():
    x = torch.arange(6.0).reshape(2, 3)
    there = x.cuda()
    assert on(
        there, x.to("cuda", torch.float16), x.to(GPU, non_blocking=True), x.to(there), x.to(0)
    )
    assert there.to("cuda") is there
    assert there.cuda() is there
    assert torch.equal(there.cpu(), x)
    assert torch.equal(there.t().cpu(), x.t())
    assert torch.equal(there[:, ::2].cpu(), x[:, ::2])
    assert not there.cpu().is_cuda
    assert x.t().cuda().stride() == x.t().stride()
    assert there.to(torch.int32).dtype == torch.int32
    there.copy_(torch.ones(2, 3))
    x.copy_(there)
    assert x.sum() == 6
    assert not x.is_cuda


def gradients_go_with_their_tensors():
    x = torch.randn(3, requires_grad=True)
    (x.cuda() * 2).sum().backward()
    assert not x.grad.is_cuda
    assert x.grad.tolist() == [2, 2, 2]
    y = made(3, requires_grad=True)
    (y * y).sum().backward()
    assert on(y.grad)


def a_network_trains():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 1)).cuda()
    optimiser = torch.optim.Adam(net.parameters(), 1e-2)
    x, losses = made(16, 4), []
    for _ in range(20):
        optimiser.zero_grad()
        loss = (net(x) - 1).square().mean()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    assert on(*net.parameters(), *copy.deepcopy(net).parameters())


def the_default_device_can_be_it():
    with GPU:
        assert on(torch.ones(2), torch.tensor([1.0]))
    torch.set_default_device("cuda")
    assert on(torch.ones(2), torch.tensor([1.0]))
    torch.set_default_device("cpu")
    assert not torch.tensor([1.0]).is_cuda


def numpy_takes_copies_alone():
    with pytest.raises(TypeError, match=r"Tensor\.cpu"):
        made(2).numpy()
    assert made(2).cpu().numpy().shape == (2,)


def seeds_and_generators_repeat():
    torch.manual_seed(1)
    first = made(3)
    torch.cuda.manual_seed(1)
    torch.manual_seed(1)
    assert torch.equal(first, made(3))
    one, other = (torch.Generator(device="cuda").manual_seed(5) for _ in range(2))
    assert torch.equal(made(3, generator=one), made(3, generator=other))


def kernels_seed_from_the_state_of_the_default_generator():
    """Libraries read the seed and the offset of Philox, and move the offset on."""
    torch.manual_seed(17)
    generator = torch.cuda.default_generators[torch.cuda.current_device()]
    state = generator.get_state()
    assert state.view(torch.int64).tolist() == [17, 0]
    first = made(3, generator=generator)
    assert generator.get_state().view(torch.int64).tolist() == [17, 4]
    generator.set_state(state)
    assert torch.equal(first, made(3, generator=generator))
    state.view(torch.int64)[-1] += 8
    generator.set_state(state)
    assert generator.get_state().view(torch.int64).tolist() == [17, 8]
    assert not torch.equal(first, made(3, generator=generator))


def other_threads_have_the_device():
    found = []
    thread = threading.Thread(target=lambda: found.append(on(torch.ones(2, device="cuda"))))
    thread.start()
    thread.join()
    assert found == [True]


def the_device_describes_itself():
    assert torch.cuda.is_available()
    assert torch.cuda.get_device_properties("cuda").multi_processor_count == 132
    assert torch.cuda.get_device_capability() == (9, 0)
    assert torch.cuda.get_device_name() == "H200"
    assert "cuda:0" in repr(made(2))


def memory_is_counted_and_used_again():
    torch.cuda.reset_peak_memory_stats()
    before, x = torch.cuda.memory_allocated(), made(1000)
    place = x.data_ptr()
    assert torch.cuda.memory_allocated() - before == 4000
    del x
    assert torch.cuda.memory_allocated() == before
    assert torch.cuda.max_memory_allocated() >= before + 4000
    assert torch.empty(1000, device="cuda").data_ptr() == place
    torch.cuda.empty_cache()
    free, total = torch.cuda.mem_get_info()
    assert 0 < free <= total


def too_much_memory_is_pytorchs_error():
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(1 << 40, device="cuda")


def streams_and_events_order_work():
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        assert torch.cuda.current_stream() == side
        x = made(3)
        done = side.record_event()
    torch.cuda.current_stream().wait_event(done)
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    torch.cuda.synchronize()
    assert on(x)


def times_are_not_known_without_a_prediction():
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    end.record()
    assert begin.elapsed_time(end) != begin.elapsed_time(end)


def failed(check) -> str:
    """Return a check's error, "" for none."""
    try:
        check()
    except Exception:
        return traceback.format_exc(limit=-1)
    return ""


if __name__ == "__main__":
    names = [n for n, one in list(globals().items()) if callable(one) and n.count("_") > 1]
    print(json.dumps({name: failed(globals()[name]) for name in names}))
