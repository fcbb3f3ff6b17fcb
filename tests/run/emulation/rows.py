"""One expression for each name that the stand-in answers; each is true where the answer is right.

They are evaluated in the probed environment, with the capability 8.6 and these at hand: `torch`, `cpu(tensor)`
(is it on the CPU), `gap(call)` (does it end in an EmulationGap), `done(call)` (does it end without a value).
"""

ROWS = {
    # devices
    "version.cuda": "torch.version.cuda.split('.')[0].isdigit()",
    "backends.cuda.is_built": "torch.backends.cuda.is_built()",
    "cuda._is_compiled": "torch.cuda._is_compiled()",
    "cuda.is_available": "torch.cuda.is_available()",
    "cuda.device_count": "torch.cuda.device_count() == 1",
    "cuda.current_device": "torch.cuda.current_device() == 0",
    "cuda.set_device": "done(lambda: torch.cuda.set_device('cuda:0')) and done(lambda: torch.cuda.set_device(0))",
    "cuda.init": "done(torch.cuda.init)",
    "cuda._lazy_init": "done(lambda: torch.cuda._lazy_init()) and torch.cuda._initialized",
    "cuda._lazy_call": "(lambda seen: torch.cuda._lazy_call(lambda: seen.append(1)) is None and seen == [1])([])",
    "cuda.is_initialized": "torch.cuda.is_initialized()",
    "cuda.synchronize": "done(torch.cuda.synchronize)",
    "cuda.ipc_collect": "done(torch.cuda.ipc_collect)",
    "cuda.get_device_name": "torch.cuda.get_device_name('cuda:0') == 'NVIDIA GeForce RTX 3080 Laptop GPU'",
    "cuda.get_device_capability": "torch.cuda.get_device_capability() == (8, 6)",
    "cuda.get_device_properties": "torch.cuda.get_device_properties(0).multi_processor_count == 48",
    "cuda.can_device_access_peer": "torch.cuda.can_device_access_peer(0, 0) is False",
    "cuda.get_arch_list": "torch.cuda.get_arch_list() == ['sm_86']",
    "cuda.get_gencode_flags": "'sm_86' in torch.cuda.get_gencode_flags()",
    "cuda.get_sync_debug_mode": "torch.cuda.get_sync_debug_mode() in (0, 1)",
    "cuda.set_sync_debug_mode": (
        "done(lambda: torch.cuda.set_sync_debug_mode('warn')) and torch.cuda.get_sync_debug_mode() == 1"
    ),
    "cuda.device": "entered(torch.cuda.device('cuda')) and torch.cuda.device(torch.device('cpu')).idx == 0",
    "cuda.device_of": "entered(torch.cuda.device_of(torch.ones(1)))",
    "cuda._exchange_device": "torch.cuda._exchange_device(0) == 0",
    "cuda._maybe_exchange_device": "torch.cuda._maybe_exchange_device(-1) == -1",
    "cuda.utilization": "gap(torch.cuda.utilization)",
    "cuda.temperature": "gap(torch.cuda.temperature)",
    "cuda.power_draw": "gap(torch.cuda.power_draw)",
    "cuda.clock_rate": "gap(torch.cuda.clock_rate)",
    "cuda.is_tf32_supported": "torch.cuda.is_tf32_supported()",
    "cuda.current_blas_handle": "gap(torch.cuda.current_blas_handle)",
    "cuda.current_solver_handle": "gap(torch.cuda.current_solver_handle)",
    "cuda.GreenContext": "gap(torch.cuda.GreenContext)",
    "cuda.cudart": "gap(torch.cuda.cudart)",
    "cuda.nvtx.range_push": "torch.cuda.nvtx.range_push('step') == 0",
    "cuda.nvtx.range_pop": "torch.cuda.nvtx.range_pop() == 0",
    "cuda.nvtx.mark": "done(lambda: torch.cuda.nvtx.mark('here'))",
    "accelerator.is_available": "torch.accelerator.is_available()",
    "accelerator.device_count": "torch.accelerator.device_count() == 1",
    "accelerator.current_accelerator": "torch.accelerator.current_accelerator().type == 'cuda'",
    "accelerator.current_device_index": "torch.accelerator.current_device_index() == 0",
    "accelerator.current_device_idx": "torch.accelerator.current_device_idx() == 0",
    "accelerator.set_device_index": "done(lambda: torch.accelerator.set_device_index(0))",
    "accelerator.set_device_idx": "done(lambda: torch.accelerator.set_device_idx(0))",
    "accelerator.device_index": "entered(torch.accelerator.device_index(0))",
    "accelerator.synchronize": "done(torch.accelerator.synchronize)",
    "accelerator.get_device_capability": "'supported_dtypes' in torch.accelerator.get_device_capability()",
    "_C._cuda_getDeviceCount": "torch._C._cuda_getDeviceCount() == 1",
    "_C._cuda_getDevice": "torch._C._cuda_getDevice() == 0",
    "_C._cuda_setDevice": "done(lambda: torch._C._cuda_setDevice(0))",
    "_C._cuda_exchangeDevice": "torch._C._cuda_exchangeDevice(0) == 0",
    "_C._cuda_maybeExchangeDevice": "torch._C._cuda_maybeExchangeDevice(-1) == -1",
    "_C._cuda_init": "done(torch._C._cuda_init)",
    "_C._cuda_synchronize": "done(torch._C._cuda_synchronize)",
    "_C._cuda_isInBadFork": "torch._C._cuda_isInBadFork() is False",
    # memory
    "cuda.memory_allocated": "torch.cuda.memory_allocated() == torch.cuda.memory.memory_allocated(0) == 0",
    "cuda.max_memory_allocated": "torch.cuda.max_memory_allocated('cuda') == 0",
    "cuda.memory_reserved": "torch.cuda.memory_reserved() == 0",
    "cuda.max_memory_reserved": "torch.cuda.max_memory_reserved() == 0",
    "cuda.memory_cached": "torch.cuda.memory_cached() == 0",
    "cuda.max_memory_cached": "torch.cuda.max_memory_cached() == 0",
    "cuda.device_memory_used": "torch.cuda.device_memory_used() == 0",
    "cuda.reset_peak_memory_stats": "done(torch.cuda.reset_peak_memory_stats)",
    "cuda.reset_accumulated_memory_stats": "done(torch.cuda.reset_accumulated_memory_stats)",
    "cuda.reset_max_memory_allocated": "done(torch.cuda.reset_max_memory_allocated)",
    "cuda.reset_max_memory_cached": "done(torch.cuda.reset_max_memory_cached)",
    "cuda.empty_cache": "done(torch.cuda.empty_cache) and done(torch.cuda.memory.empty_cache)",
    "accelerator.memory_allocated": "torch.accelerator.memory_allocated() == 0",
    "accelerator.max_memory_allocated": "torch.accelerator.max_memory_allocated() == 0",
    "accelerator.memory_reserved": "torch.accelerator.memory_reserved() == 0",
    "accelerator.max_memory_reserved": "torch.accelerator.max_memory_reserved() == 0",
    "accelerator.reset_peak_memory_stats": "done(torch.accelerator.reset_peak_memory_stats)",
    "accelerator.reset_accumulated_memory_stats": "done(torch.accelerator.reset_accumulated_memory_stats)",
    "accelerator.empty_cache": "done(torch.accelerator.empty_cache)",
    "cuda.mem_get_info": (
        "torch.cuda.mem_get_info() == (16111 * 2**20, torch.cuda.get_device_properties().total_memory)"
    ),
    "cuda.memory_usage": "torch.cuda.memory_usage() == 0",
    "cuda.memory_stats": "torch.cuda.memory_stats()['allocated_bytes.all.peak'] == 0",
    "cuda.memory_stats_as_nested_dict": "torch.cuda.memory_stats_as_nested_dict() == {}",
    "cuda.memory_snapshot": "torch.cuda.memory_snapshot() == []",
    "cuda.memory_summary": "isinstance(torch.cuda.memory_summary(), str)",
    "cuda.list_gpu_processes": "isinstance(torch.cuda.list_gpu_processes(), str)",
    "cuda.get_per_process_memory_fraction": "torch.cuda.get_per_process_memory_fraction() == 1.0",
    "cuda.set_per_process_memory_fraction": "done(lambda: torch.cuda.set_per_process_memory_fraction(0.5))",
    "cuda.get_allocator_backend": "torch.cuda.get_allocator_backend() == 'native'",
    "cuda.memory._set_allocator_settings": (
        "done(lambda: torch.cuda.memory._set_allocator_settings('expandable_segments:True'))"
    ),
    "cuda.memory._record_memory_history": "done(torch.cuda.memory._record_memory_history)",
    "cuda.memory._snapshot": "torch.cuda.memory._snapshot()['segments'] == []",
    "cuda.host_memory_stats": "torch.cuda.host_memory_stats()['num_host_alloc'] == 0",
    "cuda.reset_peak_host_memory_stats": "done(torch.cuda.reset_peak_host_memory_stats)",
    "cuda.reset_accumulated_host_memory_stats": "done(torch.cuda.reset_accumulated_host_memory_stats)",
    "cuda.host_memory_stats_as_nested_dict": "torch.cuda.host_memory_stats_as_nested_dict() == {}",
    "accelerator.empty_host_cache": "done(torch.accelerator.empty_host_cache)",
    "cuda.caching_allocator_alloc": "gap(lambda: torch.cuda.caching_allocator_alloc(16))",
    "cuda.caching_allocator_delete": "gap(lambda: torch.cuda.caching_allocator_delete(0))",
    "cuda.MemPool": "gap(torch.cuda.MemPool)",
    "cuda.CUDAPluggableAllocator": "gap(lambda: torch.cuda.CUDAPluggableAllocator('a.so', 'b', 'c'))",
    "accelerator.memory_stats": "torch.accelerator.memory_stats()['reserved_bytes.all.current'] == 0",
    "accelerator.get_memory_info": "torch.accelerator.get_memory_info()[0] == 16111 * 2**20",
    "_C._cuda_emptyCache": "done(torch._C._cuda_emptyCache)",
    "_C._cuda_memoryStats": "torch._C._cuda_memoryStats(0) == {}",
    "_C._cuda_resetPeakMemoryStats": "done(lambda: torch._C._cuda_resetPeakMemoryStats(0))",
    "_C._cuda_resetAccumulatedMemoryStats": "done(lambda: torch._C._cuda_resetAccumulatedMemoryStats(0))",
    # streams
    "Stream": "torch.Stream(device='cuda').query()",
    "Event": "torch.Event().query()",
    "cuda.Stream": (
        "isinstance(torch.cuda.Stream(priority=-1), torch.Stream) and torch.cuda.Stream() != torch.cuda.Stream()"
    ),
    "cuda.get_stream_from_external": "torch.cuda.get_stream_from_external(7, 0).cuda_stream == 7",
    "cuda.ExternalStream": "torch.cuda.ExternalStream(7).cuda_stream == 7",
    "cuda.Event": "torch.cuda.Stream().record_event().elapsed_time(torch.cuda.Event(enable_timing=True)) >= 0",
    "cuda.StreamContext": "entered(torch.cuda.StreamContext(None))",
    "cuda.stream": "entered(torch.cuda.stream(torch.cuda.Stream()))",
    "cuda.current_stream": "torch.cuda.current_stream() == torch.cuda.default_stream('cuda')",
    "cuda.default_stream": "torch.cuda.default_stream().cuda_stream == 0",
    "cuda.set_stream": "done(lambda: torch.cuda.set_stream(torch.cuda.Stream()))",
    "cuda.is_current_stream_capturing": "torch.cuda.is_current_stream_capturing() is False",
    "cuda.CUDAGraph": "gap(torch.cuda.CUDAGraph)",
    "cuda.graph": "gap(lambda: torch.cuda.graph(None))",
    "cuda.graph_pool_handle": "gap(torch.cuda.graph_pool_handle)",
    "cuda.make_graphed_callables": "gap(lambda: torch.cuda.make_graphed_callables(print, ()))",
    "accelerator.Graph": "gap(torch.accelerator.Graph)",
    "accelerator.current_stream": "torch.accelerator.current_stream() == torch.cuda.current_stream()",
    "accelerator.set_stream": "done(lambda: torch.accelerator.set_stream(torch.cuda.Stream()))",
    "Tensor.record_stream": "done(lambda: torch.ones(1).record_stream(torch.cuda.current_stream()))",
    "_C._cuda_getCurrentRawStream": "torch._C._cuda_getCurrentRawStream(0) == 0",
    "_C._cuda_isCurrentStreamCapturing": "torch._C._cuda_isCurrentStreamCapturing() is False",
    # randomness
    "Generator": "isinstance(torch.Generator(device='cuda'), torch.Generator) and cpu(torch.Generator('cuda:0'))",
    "cuda.default_generators": "torch.cuda.default_generators[0].device.type == 'cpu'",
    "cuda.get_rng_state": "torch.equal(torch.cuda.get_rng_state(), torch.cuda.random.get_rng_state('cuda:0'))",
    "cuda.get_rng_state_all": "len(torch.cuda.get_rng_state_all()) == 1",
    "cuda.set_rng_state": "again(lambda: torch.cuda.set_rng_state(before), before := torch.cuda.get_rng_state())",
    "cuda.set_rng_state_all": (
        "again(lambda: torch.cuda.set_rng_state_all(before), before := torch.cuda.get_rng_state_all())"
    ),
    "cuda.manual_seed": "again(lambda: torch.cuda.manual_seed(7), torch.cuda.manual_seed(7))",
    "cuda.manual_seed_all": "again(lambda: torch.cuda.manual_seed_all(7), torch.cuda.manual_seed_all(7))",
    "cuda.seed": "done(torch.cuda.seed)",
    "cuda.seed_all": "done(torch.cuda.seed_all)",
    "cuda.initial_seed": "torch.cuda.manual_seed(11) is None and torch.cuda.initial_seed() == 11",
    # placement: factories
    "arange": "cpu(torch.arange(3, device='cuda'))",
    "as_tensor": "cpu(torch.as_tensor([1.0], device='cuda'))",
    "asarray": "cpu(torch.asarray([1.0], device='cuda'))",
    "bartlett_window": "cpu(torch.bartlett_window(4, device='cuda'))",
    "blackman_window": "cpu(torch.blackman_window(4, device='cuda'))",
    "empty": "cpu(torch.empty(2, device=torch.device('cuda', 0), pin_memory=True))",
    "empty_like": "cpu(torch.empty_like(torch.ones(2), device='cuda:0'))",
    "empty_permuted": "cpu(torch.empty_permuted((2, 3), (0, 1), device='cuda'))",
    "empty_strided": "cpu(torch.empty_strided((2, 3), (1, 2), device='cuda'))",
    "eye": "cpu(torch.eye(2, device='cuda'))",
    "full": "cpu(torch.full((2,), 1.0, device='cuda'))",
    "full_like": "cpu(torch.full_like(torch.ones(2), 1.0, device='cuda'))",
    "hamming_window": "cpu(torch.hamming_window(4, device='cuda'))",
    "hann_window": "cpu(torch.hann_window(4, device='cuda'))",
    "kaiser_window": "cpu(torch.kaiser_window(4, device='cuda'))",
    "linspace": "cpu(torch.linspace(0, 1, 3, device='cuda'))",
    "logspace": "cpu(torch.logspace(0, 1, 3, device='cuda'))",
    "normal": "cpu(torch.normal(0.0, 1.0, (2,), device='cuda'))",
    "ones": "cpu(torch.ones(2, device=0))",
    "ones_like": "cpu(torch.ones_like(torch.ones(2), device='cuda'))",
    "rand": "cpu(torch.rand(2, device='cuda', generator=torch.Generator('cuda')))",
    "rand_like": "cpu(torch.rand_like(torch.ones(2), device='cuda'))",
    "randint": "cpu(torch.randint(3, (2,), device='cuda'))",
    "randint_like": "cpu(torch.randint_like(torch.ones(2), 3, device='cuda'))",
    "randn": "cpu(torch.randn(2, device='cuda'))",
    "randn_like": "cpu(torch.randn_like(torch.ones(2), device='cuda'))",
    "randperm": "cpu(torch.randperm(3, device='cuda'))",
    "range": "cpu(quietly(lambda: torch.range(0, 2, device='cuda')))",
    "scalar_tensor": "cpu(torch.scalar_tensor(1.0, device='cuda'))",
    "sparse_coo_tensor": "cpu(torch.sparse_coo_tensor([[0]], [1.0], (2,), device='cuda'))",
    "sparse_csr_tensor": "cpu(quietly(lambda: torch.sparse_csr_tensor([0, 1], [0], [1.0], (1, 2), device='cuda')))",
    "sparse_compressed_tensor": (
        "cpu(quietly(lambda: torch.sparse_compressed_tensor("
        "[0, 1], [0], [1.0], (1, 2), layout=torch.sparse_csr, device='cuda')))"
    ),
    "tensor": "cpu(torch.tensor([1.0], device='cuda', pin_memory=True))",
    "tril_indices": "cpu(torch.tril_indices(2, 2, device='cuda'))",
    "triu_indices": "cpu(torch.triu_indices(2, 2, device='cuda'))",
    "zeros": "cpu(torch.zeros(2, device='cuda'))",
    "zeros_like": "cpu(torch.zeros_like(torch.ones(2), device='cuda'))",
    "fft.fftfreq": "cpu(torch.fft.fftfreq(4, device='cuda'))",
    "fft.rfftfreq": "cpu(torch.fft.rfftfreq(4, device='cuda'))",
    "nested.nested_tensor": "cpu(quietly(lambda: torch.nested.nested_tensor([torch.ones(1)], device='cuda')))",
    # placement: methods
    "Tensor.new_empty": "cpu(torch.ones(1).new_empty(2, device='cuda'))",
    "Tensor.new_empty_strided": "cpu(torch.ones(1).new_empty_strided((2,), (1,), device='cuda'))",
    "Tensor.new_full": "cpu(torch.ones(1).new_full((2,), 1.0, device='cuda'))",
    "Tensor.new_ones": "cpu(torch.ones(1).new_ones(2, device='cuda'))",
    "Tensor.new_tensor": "cpu(torch.ones(1).new_tensor([1.0], device='cuda'))",
    "Tensor.new_zeros": "cpu(torch.ones(1).new_zeros(2, device='cuda', pin_memory=True))",
    "Tensor.to": "all(cpu(torch.ones(1).to(d)) for d in ('cuda', 'cuda:0', 0, torch.device('cuda')))"
    " and torch.ones(1).to('cuda', torch.float64).dtype == torch.float64 and cpu(torch.ones(1).to(device='cuda'))",
    "Tensor.cuda": "cpu(torch.ones(1).cuda()) and cpu(torch.ones(1).cuda(0, non_blocking=True))",
    "Tensor.pin_memory": "cpu(torch.ones(1).pin_memory())",
    "Tensor.type": (
        "torch.ones(1).type('torch.cuda.HalfTensor').dtype == torch.float16 and torch.ones(1).type() =="
        " 'torch.FloatTensor'"
    ),
    "utils._device.DeviceContext.__init__": "cpu(under(torch.device('cuda'), lambda: torch.ones(1)))",
    "load": "cpu(torch.load(saved(torch.ones(1)), map_location='cuda'))"
    " and cpu(torch.load(saved(torch.ones(1)), map_location={'cpu': 'cuda:0'}))",
    # precision
    "is_autocast_enabled": (
        "under(torch.autocast('cuda'), lambda: torch.is_autocast_enabled('cuda') and torch.is_autocast_enabled())"
    ),
    "get_autocast_dtype": (
        "under(torch.autocast('cuda', torch.bfloat16), lambda: torch.get_autocast_dtype('cuda')) == torch.bfloat16"
    ),
    "set_autocast_enabled": (
        "done(lambda: torch.set_autocast_enabled('cuda', False)) and done(lambda: torch.set_autocast_enabled(False))"
    ),
    "set_autocast_dtype": "done(lambda: torch.set_autocast_dtype('cuda', torch.bfloat16))",
    "layer_norm": (
        "under(torch.autocast('cuda'), lambda: torch.layer_norm(torch.ones(2).half(), (2,),"
        " torch.ones(2))).dtype == torch.float32"
    ),
    "group_norm": (
        "under(torch.autocast('cuda'), lambda: torch.group_norm(torch.ones(1, 2, 2).half(), 1,"
        " torch.ones(2))).dtype == torch.float32"
    ),
    "amp.autocast_mode.autocast.__init__": (
        "under(torch.autocast('cuda'), lambda: torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float16"
    ),
    "get_autocast_gpu_dtype": "under(torch.autocast('cuda'), torch.get_autocast_gpu_dtype) == torch.float16",
    "set_autocast_gpu_dtype": "done(lambda: torch.set_autocast_gpu_dtype(torch.float16))",
    # kernels
    "_ops.OpOverload.__call__": "gap(lambda: torch.ops.emulated.only_cuda.default(torch.ones(1)))"
    " and cpu(torch.ops.aten.add.Tensor(torch.ones(1), 1))",
    "_ops.OpOverloadPacket.__call__": "gap(lambda: torch.ops.emulated.only_cuda(torch.ones(1)))",
}
