;; What every module has: splits and their reconvergence, the scheduler of a block, sectors,
;; wavefronts, and integer division. Addresses of operands and results are those of `layout.py`.
;;
;; A warp at $W: 0 number of splits, 4 tokens given, 8 live lanes, 12 its sums, 16 its local memory,
;; 20 its block's place on the grid's three axes, 32 the shared memory of its block, 36 turns left,
;; 40 whether its steps are watched, 44 its row, 48 its lanes at the start; 64 splits of 16 bytes
;; {block of code, lanes, state, barrier}; 576 tokens of the convergence barriers, a word a lane.
;; States: 0 ready, 1 at a barrier, 2 at a BSYNC.

(global $shift (export "shift") (mut i64) (i64.const 0))
(global $sum_bytes (export "sum_bytes") (mut i32) (i32.const 0)) ;; of a warp

(func $append (param $W i32) (param $pc i32) (param $mask i32) (local $S i32) (local $n i32)
  (local.set $n (i32.load (local.get $W)))
  (local.set $S (i32.add (local.get $W) (i32.shl (local.get $n) (i32.const 4))))
  (i32.store offset=64 (local.get $S) (local.get $pc))
  (i32.store offset=68 (local.get $S) (local.get $mask))
  (i32.store offset=72 (local.get $S) (i32.const 0))
  (i32.store offset=76 (local.get $S) (i32.const 0))
  (i32.store (local.get $W) (i32.add (local.get $n) (i32.const 1))))

;; Remove a split; the last one takes its place.
(func $remove (param $W i32) (param $i i32) (local $n i32)
  (local.set $n (i32.sub (i32.load (local.get $W)) (i32.const 1)))
  (i32.store (local.get $W) (local.get $n))
  (v128.store offset=64 (i32.add (local.get $W) (i32.shl (local.get $i) (i32.const 4)))
    (v128.load offset=64 (i32.add (local.get $W) (i32.shl (local.get $n) (i32.const 4))))))

;; Keep a split's place, lanes and state.
(func $hold (param $W i32) (param $i i32) (param $pc i32) (param $mask i32) (param $state i32)
  (param $barrier i32) (local $S i32)
  (local.set $S (i32.add (local.get $W) (i32.shl (local.get $i) (i32.const 4))))
  (i32.store offset=64 (local.get $S) (local.get $pc))
  (i32.store offset=68 (local.get $S) (local.get $mask))
  (i32.store offset=72 (local.get $S) (local.get $state))
  (i32.store offset=76 (local.get $S) (local.get $barrier)))

;; A number that no lane of the warp has had as a token.
(func $new_token (param $W i32) (result i32) (local $token i32)
  (local.set $token (i32.add (i32.load offset=4 (local.get $W)) (i32.const 1)))
  (i32.store offset=4 (local.get $W) (local.get $token))
  (local.get $token))

(func $give (param $W i32) (param $barrier i32) (param $mask i32) (param $token i32)
  (local $at i32)
  (local.set $at (i32.add (local.get $W) (i32.shl (local.get $barrier) (i32.const 7))))
  (block $done (loop $next
    (br_if $done (i32.eqz (local.get $mask)))
    (i32.store offset=576
      (i32.add (local.get $at) (i32.shl (i32.ctz (local.get $mask)) (i32.const 2)))
      (local.get $token))
    (local.set $mask
      (i32.and (local.get $mask) (i32.sub (local.get $mask) (i32.const 1))))
    (br $next))))

(func $greatest_token (param $W i32) (param $barrier i32) (param $mask i32) (result i32)
  (local $at i32) (local $most i32) (local $token i32)
  (local.set $at (i32.add (local.get $W) (i32.shl (local.get $barrier) (i32.const 7))))
  (block $done (loop $next
    (br_if $done (i32.eqz (local.get $mask)))
    (local.set $token (i32.load offset=576
      (i32.add (local.get $at) (i32.shl (i32.ctz (local.get $mask)) (i32.const 2)))))
    (if (i32.gt_u (local.get $token) (local.get $most))
      (then (local.set $most (local.get $token))))
    (local.set $mask
      (i32.and (local.get $mask) (i32.sub (local.get $mask) (i32.const 1))))
    (br $next)))
  (local.get $most))

;; Whether one of some lanes has a token.
(func $has_token (param $W i32) (param $barrier i32) (param $mask i32) (param $token i32)
  (result i32) (local $at i32)
  (local.set $at (i32.add (local.get $W) (i32.shl (local.get $barrier) (i32.const 7))))
  (block $done (loop $next
    (br_if $done (i32.eqz (local.get $mask)))
    (if (i32.eq (local.get $token) (i32.load offset=576
        (i32.add (local.get $at) (i32.shl (i32.ctz (local.get $mask)) (i32.const 2)))))
      (then (return (i32.const 1))))
    (local.set $mask
      (i32.and (local.get $mask) (i32.sub (local.get $mask) (i32.const 1))))
    (br $next)))
  (i32.const 0))

;; Continue the splits at a BSYNC that miss no live lane with their token; equal ones join.
(func $release (param $W i32) (local $i i32) (local $j i32) (local $S i32) (local $O i32)
  (local $here i32) (local $token i32) (local $barrier i32)
  (block $done (loop $next
    (br_if $done (i32.ge_u (local.get $i) (i32.load (local.get $W))))
    (local.set $S (i32.add (local.get $W) (i32.shl (local.get $i) (i32.const 4))))
    (local.set $i (i32.add (local.get $i) (i32.const 1)))
    (br_if $next (i32.ne (i32.load offset=72 (local.get $S)) (i32.const 2)))
    (local.set $barrier (i32.load offset=76 (local.get $S)))
    (local.set $token (call $greatest_token (local.get $W) (local.get $barrier)
      (i32.load offset=68 (local.get $S))))
    (local.set $here (i32.const 0))
    (local.set $j (i32.const 0))
    (loop $each
      (local.set $O (i32.add (local.get $W) (i32.shl (local.get $j) (i32.const 4))))
      (if (i32.and
          (i32.eq (i32.load offset=72 (local.get $O)) (i32.const 2))
          (i32.eq (i32.load offset=64 (local.get $O)) (i32.load offset=64 (local.get $S))))
        (then (local.set $here
          (i32.or (local.get $here) (i32.load offset=68 (local.get $O))))))
      (local.set $j (i32.add (local.get $j) (i32.const 1)))
      (br_if $each (i32.lt_u (local.get $j) (i32.load (local.get $W)))))
    (br_if $next (call $has_token (local.get $W) (local.get $barrier)
      (i32.and (i32.load offset=8 (local.get $W)) (i32.xor (local.get $here) (i32.const -1)))
      (local.get $token)))
    (local.set $j (local.get $i))
    (block $joined (loop $each
      (br_if $joined (i32.ge_u (local.get $j) (i32.load (local.get $W))))
      (local.set $O (i32.add (local.get $W) (i32.shl (local.get $j) (i32.const 4))))
      (if (i32.and
          (i32.and
            (i32.eq (i32.load offset=72 (local.get $O)) (i32.const 2))
            (i32.eq (i32.load offset=64 (local.get $O)) (i32.load offset=64 (local.get $S))))
          (i32.eq (local.get $token) (call $greatest_token (local.get $W) (local.get $barrier)
            (i32.load offset=68 (local.get $O)))))
        (then
          (i32.store offset=68 (local.get $S)
            (i32.or (i32.load offset=68 (local.get $S)) (i32.load offset=68 (local.get $O))))
          (call $remove (local.get $W) (local.get $j)))
        (else (local.set $j (i32.add (local.get $j) (i32.const 1)))))
      (br $each)))
    (i32.store offset=64 (local.get $S)
      (i32.add (i32.load offset=64 (local.get $S)) (i32.const 1)))
    (i32.store offset=72 (local.get $S) (i32.const 0))
    (br $next))))

;; Run blocks of threads, warp after warp to their next barrier. 0: all have ended; 1: one stands
;; still; 2: a warp has had too many turns.
(func (export "run") (param $W i32) (param $size i32) (param $warps i32) (param $blocks i32)
  (result i32) (local $end i32)
  (block $done (loop $next
    (br_if $done (i32.eqz (local.get $blocks)))
    (local.set $end (call $block (local.get $W) (local.get $size) (local.get $warps)))
    (if (local.get $end) (then (return (local.get $end))))
    (local.set $W (i32.add (local.get $W) (i32.mul (local.get $size) (local.get $warps))))
    (local.set $blocks (i32.sub (local.get $blocks) (i32.const 1)))
    (br $next)))
  (i32.const 0))

;; Run blocks from their start, one after the other in the memory of one block.
(func (export "run_anew") (param $W i32) (param $size i32) (param $warps i32) (param $blocks i32)
  (param $entry i32) (param $local_bytes i32) (param $shared_bytes i32) (param $turns i32)
  (result i32) (local $end i32) (local $w i32) (local $V i32)
  (block $done (loop $next
    (br_if $done (i32.eqz (local.get $blocks)))
    (memory.fill (i32.load offset=32 (local.get $W)) (i32.const 0) (local.get $shared_bytes))
    (local.set $w (local.get $warps))
    (local.set $V (local.get $W))
    (loop $warp
      (i32.store offset=36 (local.get $V) (local.get $turns))
      (call $anew (local.get $V) (local.get $entry) (local.get $warps) (local.get $local_bytes))
      (local.set $V (i32.add (local.get $V) (local.get $size)))
      (br_if $warp (local.tee $w (i32.sub (local.get $w) (i32.const 1)))))
    (local.set $end (call $block (local.get $W) (local.get $size) (local.get $warps)))
    (if (local.get $end) (then (return (local.get $end))))
    (local.set $entry (i32.add (local.get $entry) (i32.const 16)))
    (local.set $blocks (i32.sub (local.get $blocks) (i32.const 1)))
    (br $next)))
  (i32.const 0))

;; Set a warp to its start in another block: the rows of warps in a block follow one another.
(func $anew (param $W i32) (param $entry i32) (param $warps i32) (param $local_bytes i32)
  (i64.store (local.get $W) (i64.const 1))
  (i32.store offset=8 (local.get $W) (i32.load offset=48 (local.get $W)))
  (i32.store offset=12 (local.get $W) (i32.add (i32.load offset=12 (local.get $W))
    (i32.mul (local.get $warps) (global.get $sum_bytes))))
  (i64.store offset=20 align=4 (local.get $W) (i64.load (local.get $entry)))
  (i32.store offset=28 (local.get $W) (i32.load offset=8 (local.get $entry)))
  (i32.store offset=40 (local.get $W) (i32.load offset=12 (local.get $entry)))
  (i32.store offset=44 (local.get $W)
    (i32.add (i32.load offset=44 (local.get $W)) (local.get $warps)))
  (v128.store offset=64 (local.get $W) (i32x4.replace_lane 1
    (v128.const i64x2 0 0) (i32.load offset=48 (local.get $W))))
  (if (local.get $local_bytes) (then
    (memory.fill (i32.load offset=16 (local.get $W)) (i32.const 0) (local.get $local_bytes))))
  (call $start (local.get $W)))

(func $block (param $first i32) (param $size i32) (param $warps i32) (result i32)
  (local $w i32) (local $W i32) (local $i i32) (local $S i32)
  (local $ran i32) (local $live i32) (local $waits i32)
  (loop $again
    (local.set $ran (i32.const 0)) (local.set $live (i32.const 0))
    (local.set $waits (i32.const 0)) (local.set $w (i32.const 0))
    (local.set $W (local.get $first))
    (loop $warp
      (local.set $i (i32.const 0))
      (block $over (loop $split
        (br_if $over (i32.ge_u (local.get $i) (i32.load (local.get $W))))
        (local.set $S (i32.add (local.get $W) (i32.shl (local.get $i) (i32.const 4))))
        (if (i32.eqz (i32.load offset=72 (local.get $S)))
          (then
            (call $warp (local.get $W) (local.get $i))
            (if (i32.lt_s (i32.load offset=36 (local.get $W)) (i32.const 0))
              (then (return (i32.const 2))))
            (local.set $ran (i32.const 1))
            (local.set $i (i32.const 0)))
          (else (local.set $i (i32.add (local.get $i) (i32.const 1)))))
        (br $split)))
      (local.set $i (i32.const 0))
      (block $over (loop $split
        (br_if $over (i32.ge_u (local.get $i) (i32.load (local.get $W))))
        (local.set $live (i32.const 1))
        (if (i32.ne (i32.const 1) (i32.load offset=72
            (i32.add (local.get $W) (i32.shl (local.get $i) (i32.const 4)))))
          (then (local.set $waits (i32.const 1))))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br $split)))
      (local.set $W (i32.add (local.get $W) (local.get $size)))
      (local.set $w (i32.add (local.get $w) (i32.const 1)))
      (br_if $warp (i32.lt_u (local.get $w) (local.get $warps))))
    (if (i32.eqz (local.get $live)) (then (return (i32.const 0))))
    (if (local.get $waits)
      (then (br_if $again (local.get $ran)) (return (i32.const 1))))
    (local.set $w (i32.const 0))
    (local.set $W (local.get $first))
    (loop $warp
      (local.set $i (i32.const 0))
      (block $over (loop $split
        (br_if $over (i32.ge_u (local.get $i) (i32.load (local.get $W))))
        (local.set $S (i32.add (local.get $W) (i32.shl (local.get $i) (i32.const 4))))
        (i32.store offset=64 (local.get $S)
          (i32.add (i32.load offset=64 (local.get $S)) (i32.const 1)))
        (i32.store offset=72 (local.get $S) (i32.const 0))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br $split)))
      (local.set $W (i32.add (local.get $W) (local.get $size)))
      (local.set $w (i32.add (local.get $w) (i32.const 1)))
      (br_if $warp (i32.lt_u (local.get $w) (local.get $warps))))
    (br $again))
  (unreachable))

;; The array with so many bytes at an address; every other array traps.
(func $find (param $x i64) (param $width i64) (result i32) (local $e i32) (local $n i32)
  (local.set $e (i32.const @ARRAYS@))
  (local.set $n (i32.load (i32.const @ARRAY_COUNT@)))
  (loop $next
    (if (i32.eqz (local.get $n)) (then (unreachable)))
    (if (i32.and
        (i64.ge_s (local.get $x) (i64.load (local.get $e)))
        (i64.le_s (i64.add (local.get $x) (local.get $width))
          (i64.add (i64.load (local.get $e)) (i64.load offset=8 (local.get $e)))))
      (then (return (local.get $e))))
    (local.set $e (i32.add (local.get $e) (i32.const 32)))
    (local.set $n (i32.sub (local.get $n) (i32.const 1)))
    (br $next))
  (unreachable))

;; How many different numbers the lanes hold, each shifted right: sectors, or words.
(func $distinct (param $on i32) (param $shift i64) (result i32)
  (local $n i32) (local $k i32) (local $x i64)
  (block $done (loop $next
    (br_if $done (i32.eqz (local.get $on)))
    (local.set $x (i64.shr_u
      (i64.load offset=@IN@ (i32.shl (i32.ctz (local.get $on)) (i32.const 3)))
      (local.get $shift)))
    (local.set $on (i32.and (local.get $on) (i32.sub (local.get $on) (i32.const 1))))
    (local.set $k (local.get $n))
    (block $new (loop $seen
      (br_if $new (i32.eqz (local.get $k)))
      (local.set $k (i32.sub (local.get $k) (i32.const 1)))
      (br_if $next (i64.eq (local.get $x)
        (i64.load offset=@SCRATCH@ (i32.shl (local.get $k) (i32.const 3)))))
      (br $seen)))
    (i64.store offset=@SCRATCH@ (i32.shl (local.get $n) (i32.const 3)) (local.get $x))
    (local.set $n (i32.add (local.get $n) (i32.const 1)))
    (br $next)))
  (local.get $n))

;; The most lanes with one address of global memory.
(func $most_alike (param $on i32) (result i32)
  (local $left i32) (local $same i32) (local $most i32) (local $x i64)
  (block $done (loop $next
    (br_if $done (i32.eqz (local.get $on)))
    (local.set $x (i64.load offset=@IN@ (i32.shl (i32.ctz (local.get $on)) (i32.const 3))))
    (local.set $left (local.get $on)) (local.set $same (i32.const 0))
    (loop $each
      (if (i64.eq (local.get $x)
          (i64.load offset=@IN@ (i32.shl (i32.ctz (local.get $left)) (i32.const 3))))
        (then
          (local.set $same (i32.add (local.get $same) (i32.const 1)))
          (local.set $on (i32.and (local.get $on)
            (i32.xor (i32.const -1)
              (i32.shl (i32.const 1) (i32.ctz (local.get $left))))))))
      (local.set $left (i32.and (local.get $left) (i32.sub (local.get $left) (i32.const 1))))
      (br_if $each (local.get $left)))
    (if (i32.gt_u (local.get $same) (local.get $most))
      (then (local.set $most (local.get $same))))
    (br $next)))
  (local.get $most))

;; The most lanes with a word in one bank of shared memory.
(func $most_of_a_bank (param $on i32) (result i32) (local $n i32) (local $most i32) (local $at i32)
  (v128.store offset=@SCRATCH@ (i32.const 0) (v128.const i64x2 0 0))
  (v128.store offset=@SCRATCH@ (i32.const 16) (v128.const i64x2 0 0))
  (block $done (loop $next
    (br_if $done (i32.eqz (local.get $on)))
    (local.set $at (i32.and (i32.const 31) (i32.shr_u
      (i32.load offset=@IN@ (i32.shl (i32.ctz (local.get $on)) (i32.const 2))) (i32.const 2))))
    (local.set $n (i32.add (i32.const 1) (i32.load8_u offset=@SCRATCH@ (local.get $at))))
    (i32.store8 offset=@SCRATCH@ (local.get $at) (local.get $n))
    (if (i32.gt_u (local.get $n) (local.get $most)) (then (local.set $most (local.get $n))))
    (local.set $on (i32.and (local.get $on) (i32.sub (local.get $on) (i32.const 1))))
    (br $next)))
  (local.get $most))

;; Whether lanes access the same word as the lane so far from them, or one of both nothing.
(func $in_pairs (param $on i32) (param $apart i32) (result i32) (local $l i32)
  (loop $next
    (if (i32.eqz (i32.and (local.get $l) (local.get $apart)))
      (then (if (i32.and
          (i32.and
            (i32.shr_u (local.get $on) (local.get $l))
            (i32.shr_u (local.get $on) (i32.add (local.get $l) (local.get $apart))))
          (i32.ne
            (i32.load offset=@IN@ (i32.shl (local.get $l) (i32.const 2)))
            (i32.load offset=@IN@
              (i32.shl (i32.add (local.get $l) (local.get $apart)) (i32.const 2)))))
        (then (return (i32.const 0))))))
    (local.set $l (i32.add (local.get $l) (i32.const 1)))
    (br_if $next (i32.lt_u (local.get $l) (i32.const 32))))
  (i32.const 1))

;; Whether addresses of shared memory rise by 4 from lane to lane, or (0) are all the same.
(func $rising (param $by i32) (result i32) (local $k i32) (local $all v128)
  (local $wanted v128) (local $step v128)
  (local.set $step (i32x4.splat (i32.shl (local.get $by) (i32.const 2))))
  (local.set $wanted (i32x4.add (v128.load32_splat offset=@IN@ (i32.const 0))
    (i32x4.mul (i32x4.splat (local.get $by)) (v128.const i32x4 0 1 2 3))))
  (local.set $all (v128.const i32x4 -1 -1 -1 -1))
  (loop $next
    (local.set $all (v128.and (local.get $all)
      (i32x4.eq (local.get $wanted) (v128.load offset=@IN@ (local.get $k)))))
    (local.set $wanted (i32x4.add (local.get $wanted) (local.get $step)))
    (local.set $k (i32.add (local.get $k) (i32.const 16)))
    (br_if $next (i32.lt_u (local.get $k) (i32.const 128))))
  (i32x4.all_true (local.get $all)))

;; Wavefronts of an access to shared memory, and the least it could take in the upper half: of so
;; many words a lane; `pairs` where a load's parts may be twice as large.
(func $wavefronts (param $on i32) (param $words i32) (param $pairs i32) (result i64)
  (local $lanes i32) (local $l i32) (local $end i32) (local $k i32) (local $word i32)
  (local $bank i32) (local $n i32) (local $j i32) (local $most i32)
  (local $taken i32) (local $least i32)
  (if (i32.eqz (local.get $on)) (then (return (i64.const 0))))
  (if (i32.and (i32.eq (local.get $on) (i32.const -1)) (i32.eq (local.get $words) (i32.const 1)))
    (then
      (if (call $rising (i32.const 4)) (then (return (i64.const 0x100000001))))
      (if (call $rising (i32.const 0)) (then (return (i64.const 0x100000001))))))
  (local.set $lanes (i32.div_u (i32.const 32) (local.get $words)))
  (if (i32.and (local.get $pairs) (i32.gt_u (local.get $words) (i32.const 1)))
    (then (if (i32.or (call $in_pairs (local.get $on) (i32.const 1))
        (call $in_pairs (local.get $on) (i32.const 2)))
      (then (local.set $lanes (i32.shl (local.get $lanes) (i32.const 1)))))))
  (loop $part
    (v128.store offset=@SCRATCH@ (i32.const 0) (v128.const i64x2 0 0))
    (v128.store offset=@SCRATCH@ (i32.const 16) (v128.const i64x2 0 0))
    (local.set $most (i32.const 0))
    (local.set $end (i32.add (local.get $l) (local.get $lanes)))
    (loop $lane
      (if (i32.and (i32.shr_u (local.get $on) (local.get $l)) (i32.const 1)) (then
        (local.set $k (i32.const 0))
        (loop $each
          (local.set $word (i32.add (local.get $k) (i32.shr_u
            (i32.load offset=@IN@ (i32.shl (local.get $l) (i32.const 2))) (i32.const 2))))
          (local.set $bank (i32.and (local.get $word) (i32.const 31)))
          (local.set $n (i32.load8_u offset=@SCRATCH@ (local.get $bank)))
          (local.set $j (local.get $n))
          (block $old
            (block $new (loop $seen
              (br_if $new (i32.eqz (local.get $j)))
              (local.set $j (i32.sub (local.get $j) (i32.const 1)))
              (br_if $old (i32.eq (local.get $word) (i32.load offset=@WORDS@ (i32.add
                (i32.shl (local.get $bank) (i32.const 8)) (i32.shl (local.get $j) (i32.const 2))))))
              (br $seen)))
            (i32.store offset=@WORDS@ (i32.add
              (i32.shl (local.get $bank) (i32.const 8)) (i32.shl (local.get $n) (i32.const 2)))
              (local.get $word))
            (local.set $n (i32.add (local.get $n) (i32.const 1)))
            (i32.store8 offset=@SCRATCH@ (local.get $bank) (local.get $n))
            (if (i32.gt_u (local.get $n) (local.get $most))
              (then (local.set $most (local.get $n)))))
          (local.set $k (i32.add (local.get $k) (i32.const 1)))
          (br_if $each (i32.lt_u (local.get $k) (local.get $words))))))
      (local.set $l (i32.add (local.get $l) (i32.const 1)))
      (br_if $lane (i32.lt_u (local.get $l) (local.get $end))))
    (local.set $taken (i32.add (local.get $taken) (local.get $most)))
    (local.set $least (i32.add (local.get $least) (i32.ne (local.get $most) (i32.const 0))))
    (br_if $part (i32.lt_u (local.get $l) (i32.const 32))))
  (i64.or (i64.extend_i32_u (local.get $taken))
    (i64.shl (i64.extend_i32_u (local.get $least)) (i64.const 32))))

;; Whether addresses of global memory rise by a step from lane to lane.
(func $rising_wide (param $by i64) (result i32) (local $k i32) (local $all v128)
  (local $wanted v128) (local $step v128)
  (if (i64.ne (i64.load (i32.const @IN_LAST@))
      (i64.add (i64.load (i32.const @IN@)) (i64.mul (local.get $by) (i64.const 31))))
    (then (return (i32.const 0))))
  (local.set $step (i64x2.splat (i64.shl (local.get $by) (i64.const 1))))
  (local.set $wanted (i64x2.add (v128.load64_splat (i32.const @IN@))
    (i64x2.replace_lane 1 (v128.const i64x2 0 0) (local.get $by))))
  (local.set $all (v128.const i64x2 -1 -1))
  (loop $next
    (local.set $all (v128.and (local.get $all)
      (i64x2.eq (local.get $wanted) (v128.load offset=@IN@ (local.get $k)))))
    (local.set $wanted (i64x2.add (local.get $wanted) (local.get $step)))
    (local.set $k (i32.add (local.get $k) (i32.const 16)))
    (br_if $next (i32.lt_u (local.get $k) (i32.const 256))))
  (i64x2.all_true (local.get $all)))

;; Whether all lanes run, and name all lanes of the warp in their first operand.
(func $are_all (param $on i32) (result i32)
  (i32.and (i32.eq (local.get $on) (i32.const -1))
    (i32.and (i32.eq (i32.load (i32.const @IN@)) (i32.const -1)) (call $rising (i32.const 0)))))

;; Shuffle 32-bit values: `first` is where the operands value, lane and limits lie, 256 bytes
;; apart, `mode` 0 idx, 1 up, 2 down, 3 bfly. Returns the lanes with a source inside their segment.
(func $shuffle (param $on i32) (param $mode i32) (param $first i32) (param $out i32) (result i32)
  (local $m i32) (local $l i32) (local $at i32) (local $lane i32) (local $segment i32)
  (local $last i32) (local $source i32) (local $in i32) (local $inside i32)
  (local.set $m (local.get $on))
  (block $done (loop $next
    (br_if $done (i32.eqz (local.get $m)))
    (local.set $l (i32.ctz (local.get $m)))
    (local.set $m (i32.and (local.get $m) (i32.sub (local.get $m) (i32.const 1))))
    (local.set $at (i32.add (local.get $first) (i32.shl (local.get $l) (i32.const 2))))
    (local.set $lane (i32.and (i32.load offset=256 (local.get $at)) (i32.const 31)))
    (local.set $last (i32.load offset=512 (local.get $at)))
    (local.set $segment
      (i32.and (i32.shr_u (local.get $last) (i32.const 8)) (i32.const 31)))
    (local.set $last (i32.or
      (i32.and (local.get $l) (local.get $segment))
      (i32.and (i32.and (local.get $last) (i32.const 31))
        (i32.xor (local.get $segment) (i32.const -1)))))
    (local.set $source (i32.or
      (i32.and (local.get $l) (local.get $segment))
      (i32.and (local.get $lane) (i32.xor (local.get $segment) (i32.const -1)))))
    (if (i32.eq (local.get $mode) (i32.const 1))
      (then (local.set $source (i32.sub (local.get $l) (local.get $lane)))))
    (if (i32.eq (local.get $mode) (i32.const 2))
      (then (local.set $source (i32.add (local.get $l) (local.get $lane)))))
    (if (i32.eq (local.get $mode) (i32.const 3))
      (then (local.set $source (i32.xor (local.get $l) (local.get $lane)))))
    (local.set $in (select
      (i32.ge_s (local.get $source) (local.get $last))
      (i32.le_s (local.get $source) (local.get $last))
      (i32.eq (local.get $mode) (i32.const 1))))
    (local.set $inside (i32.or (local.get $inside) (i32.shl (local.get $in) (local.get $l))))
    (local.set $source (select (local.get $source) (local.get $l) (local.get $in)))
    (i32.store (i32.add (local.get $out) (i32.shl (local.get $l) (i32.const 2)))
      (select
        (i32.load (i32.add (local.get $first) (i32.shl (local.get $source) (i32.const 2))))
        (i32.const 0)
        (i32.and (i32.shr_u (local.get $on) (local.get $source)) (i32.const 1))))
    (br $next)))
  (local.get $inside))

;; Set all lanes of a result.
(func $splat (param $out i32) (param $value i32) (local $end i32)
  (local.set $end (i32.add (local.get $out) (i32.const 128)))
  (loop $next
    (v128.store (local.get $out) (i32x4.splat (local.get $value)))
    (local.set $out (i32.add (local.get $out) (i32.const 16)))
    (br_if $next (i32.lt_u (local.get $out) (local.get $end)))))

;; Mark the sectors of global memory that lanes touch, in one of the tables of marks.
(global $marks (export "marks") (mut i32) (i32.const 0))
(global $marks_size (export "marks_size") (mut i32) (i32.const 0))
(func $mark (param $on i32) (param $table i32)
  (local.set $table (i32.add (global.get $marks)
    (i32.mul (local.get $table) (global.get $marks_size))))
  (block $done (loop $next
    (br_if $done (i32.eqz (local.get $on)))
    (i32.store8
      (i32.add (local.get $table) (i32.wrap_i64 (i64.shr_u (i64.sub
        (i64.load offset=@IN@ (i32.shl (i32.ctz (local.get $on)) (i32.const 3)))
        (global.get $shift)) (i64.const 5))))
      (i32.const 1))
    (local.set $on (i32.and (local.get $on) (i32.sub (local.get $on) (i32.const 1))))
    (br $next))))

;; Write a step down: its pc, warp, lanes, addresses of 64 bits (1) or 32 bits (2) of these.
(global $notes (export "notes") (mut i32) (i32.const 0))
(global $notes_end (export "notes_end") (mut i32) (i32.const 0))
(func $note (param $W i32) (param $pc i32) (param $mask i32) (param $on i32) (param $taken i32)
  (param $space i32)
  (if (i32.ge_u (global.get $notes) (global.get $notes_end)) (then (call $drain)))
  (i32.store (global.get $notes) (local.get $pc))
  (i32.store offset=4 (global.get $notes) (i32.load offset=44 (local.get $W)))
  (i32.store offset=8 (global.get $notes) (local.get $mask))
  (i32.store offset=12 (global.get $notes) (local.get $on))
  (i32.store offset=16 (global.get $notes) (local.get $taken))
  (i32.store offset=20 (global.get $notes) (local.get $space))
  (memory.copy (i32.add (global.get $notes) (i32.const 32)) (i32.const @IN@) (i32.const 256))
  (global.set $notes (i32.add (global.get $notes) (i32.const 288))))

;; Integer division as NumPy has it: 0 where the divisor is 0, rounded down.
(func $floor_divide_u32 (param $a i32) (param $b i32) (result i32)
  (if (result i32) (local.get $b)
    (then (i32.div_u (local.get $a) (local.get $b))) (else (i32.const 0))))
(func $floor_divide_u64 (param $a i64) (param $b i64) (result i64)
  (if (result i64) (i64.eqz (local.get $b))
    (then (i64.const 0)) (else (i64.div_u (local.get $a) (local.get $b)))))
(func $floor_divide_s32 (param $a i32) (param $b i32) (result i32)
  (i32.wrap_i64 (call $floor_divide_s64
    (i64.extend_i32_s (local.get $a)) (i64.extend_i32_s (local.get $b)))))
(func $floor_divide_s64 (param $a i64) (param $b i64) (result i64) (local $q i64)
  (if (i64.eqz (local.get $b)) (then (return (i64.const 0))))
  (if (i64.eq (local.get $b) (i64.const -1))
    (then (return (i64.sub (i64.const 0) (local.get $a)))))
  (local.set $q (i64.div_s (local.get $a) (local.get $b)))
  (if (result i64) (i32.and
      (i64.ne (i64.mul (local.get $q) (local.get $b)) (local.get $a))
      (i64.lt_s (i64.xor (local.get $a) (local.get $b)) (i64.const 0)))
    (then (i64.sub (local.get $q) (i64.const 1))) (else (local.get $q))))
(func $remainder_u32 (param $a i32) (param $b i32) (result i32)
  (if (result i32) (local.get $b)
    (then (i32.rem_u (local.get $a) (local.get $b))) (else (i32.const 0))))
(func $remainder_u64 (param $a i64) (param $b i64) (result i64)
  (if (result i64) (i64.eqz (local.get $b))
    (then (i64.const 0)) (else (i64.rem_u (local.get $a) (local.get $b)))))
(func $remainder_s32 (param $a i32) (param $b i32) (result i32)
  (i32.wrap_i64 (call $remainder_s64
    (i64.extend_i32_s (local.get $a)) (i64.extend_i32_s (local.get $b)))))
(func $remainder_s64 (param $a i64) (param $b i64) (result i64)
  (if (i64.eqz (local.get $b)) (then (return (i64.const 0))))
  (i64.sub (local.get $a)
    (i64.mul (local.get $b) (call $floor_divide_s64 (local.get $a) (local.get $b)))))
