#!/bin/sh
# Builds the programs of this folder for the GPU that is there, and runs them: results, cycles, times, counters.
# usage: measure.sh FOLDER [ARCH]
out=${1:?usage: measure.sh FOLDER [ARCH]}
arch=${2:-sm_90}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$out"
for name in products rates gemm; do
  nvcc -O3 -arch="$arch" -lineinfo -o "/tmp/matrices-$name" "$here/$name.cu" &
done
wait
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader > "$out/gpu.txt"
/tmp/matrices-products "$out/products.bin" > "$out/products.txt" 2>&1
/tmp/matrices-products "" 512 > "$out/products512.txt" 2>&1
gzip -9 -f "$out/products.bin"
if [ "$arch" = sm_90 ]; then
  nvcc -O3 -gencode arch=compute_90a,code=sm_90a -o /tmp/matrices-warpgroups "$here/warpgroups.cu"
  /tmp/matrices-warpgroups > "$out/warpgroups.txt" 2>&1
  /tmp/matrices-warpgroups rates > "$out/warpgroup_rates.jsonl" 2>&1
fi
/tmp/matrices-rates > "$out/rates.jsonl" 2>&1
/tmp/matrices-gemm > "$out/gemm.jsonl" 2>&1
shared=l1tex__data_pipe_lsu_wavefronts_mem_shared_op
ncu --clock-control none --csv --page raw --kernel-name regex:'direct|staged|pipelined' --metrics \
smsp__inst_executed.sum,smsp__thread_inst_executed.sum,smsp__thread_inst_executed_pred_on.sum,\
sm__inst_executed_pipe_tensor_op_hmma.sum,sm__inst_executed_pipe_tensor.sum,smsp__inst_executed_pipe_lsu.sum,\
smsp__inst_executed_op_ldsm.sum,smsp__inst_executed_op_shared_ld.sum,smsp__inst_executed_op_shared_st.sum,\
${shared}_ld.sum,${shared}_st.sum,l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum,\
l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum,l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum,\
l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum,smsp__sass_branch_targets_threads_divergent.sum,\
sm__pipe_tensor_op_hmma_cycles_active.sum,sm__inst_issued.sum \
  /tmp/matrices-gemm 256 once > "$out/ncu.csv" 2> "$out/ncu.err"
ncu --query-metrics 2>/dev/null | grep -i -E 'tensor|ldsm' > "$out/metrics.txt"
