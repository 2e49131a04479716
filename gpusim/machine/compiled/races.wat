;; Races, looked for where accesses are: the last writer and the last reader of each element, as
;; `checking/element_access.py` packs them {time 24 bits, block 24, thread 10, flags 4}, in cells of
;; 16 bytes. What a rule might report traps: the launch is then examined step by step. Bit 62 of an
;; atomic says that a barrier of its block stands between a plain store and it: for other blocks
;; that store is in no order.
;;
;; Of a warp at $W: 52 when its lanes met last, 56 its block and first thread, packed. Time goes on
;; with each barrier, and each time that lanes meet; it begins anew in each block.

(global $time (mut i32) (i32.const 1))
(global $passed (mut i32) (i32.const 0)) ;; when the block's barrier opened last
(global $block_warps (export "block_warps") (mut i32) (i32.const 1))
(global $warp_bytes (export "warp_bytes") (mut i32) (i32.const 0))
(global $first_block (export "first_block") (mut i32) (i32.const 0)) ;; counted from 1
(global $cells (export "cells") (mut i32) (i32.const 0)) ;; of global memory
(global $cells_first (export "cells_first") (mut i64) (i64.const 0)) ;; the address of the first
(global $cells_count (export "cells_count") (mut i64) (i64.const 0))
(global $own_cells (export "own_cells") (mut i32) (i32.const 0)) ;; of shared memory
(global $own_count (export "own_count") (mut i32) (i32.const 0))
(global $own_empty (export "own_empty") (mut i32) (i32.const 0)) ;; those without a value at first
(global $stamps (export "stamps") (mut i32) (i32.const 0)) ;; of local memory
(global $stamps_count (export "stamps_count") (mut i32) (i32.const 0)) ;; of a lane
(global $accesses (export "accesses") (mut i64) (i64.const 0))
(global $ordered (export "ordered") (mut i64) (i64.const 0))
(global $local_accesses (export "local_accesses") (mut i64) (i64.const 0))
(global $of_unknown_arrays (export "of_unknown_arrays") (mut i64) (i64.const 0))

;; A warp begins in another block.
(func $begins (param $W i32) (local $row i32) (local $warp i32)
  (local.set $row (i32.load offset=44 (local.get $W)))
  (local.set $warp (i32.rem_u (local.get $row) (global.get $block_warps)))
  (i64.store offset=56 (local.get $W) (i64.or
    (i64.shl (i64.extend_i32_u (i32.add (global.get $first_block)
      (i32.div_u (local.get $row) (global.get $block_warps)))) (i64.const 14))
    (i64.extend_i32_u (i32.shl (local.get $warp) (i32.const 9)))))
  (i32.store offset=52 (local.get $W) (i32.const 0))
  (if (i32.eqz (local.get $warp)) (then
    (global.set $time (i32.const 1))
    (global.set $passed (i32.const 0)))))

(func $tick (result i32) (local $now i32)
  (local.set $now (global.get $time))
  (if (i32.ge_u (local.get $now) (i32.const 0xFFFFFE)) (then (unreachable)))
  (global.set $time (i32.add (local.get $now) (i32.const 1)))
  (local.get $now))

;; A barrier opens for a block, whose threads all stand at one instruction: none has exited.
(func $opened (param $W i32) (local $n i32) (local $i i32) (local $pc i32)
  (local.set $pc (i32.load offset=64 (local.get $W)))
  (local.set $n (global.get $block_warps))
  (loop $warp
    (if (i32.ne (i32.load offset=8 (local.get $W)) (i32.load offset=48 (local.get $W)))
      (then (unreachable)))
    (local.set $i (i32.load (local.get $W)))
    (loop $split
      (local.set $i (i32.sub (local.get $i) (i32.const 1)))
      (if (i32.ne (local.get $pc) (i32.load offset=64
          (i32.add (local.get $W) (i32.shl (local.get $i) (i32.const 4)))))
        (then (unreachable)))
      (br_if $split (local.get $i)))
    (local.set $W (i32.add (local.get $W) (global.get $warp_bytes)))
    (br_if $warp (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
  (global.set $passed (call $tick)))

;; Lanes of a warp meet: all of its lanes, or nothing is learnt.
(func $meets (param $W i32) (param $on i32)
  (if (i32.eq (local.get $on) (i32.load offset=48 (local.get $W)))
    (then (i32.store offset=52 (local.get $W) (call $tick)))))

;; When an access was made.
(func $time_of (param $access i64) (result i32)
  (i32.and (i32.const 0xFFFFFF)
    (i32.wrap_i64 (i64.shr_u (local.get $access) (i64.const 38)))))

;; A barrier or another event orders an earlier access before one of a thread.
(func $require (param $earlier i64) (param $mine i64) (param $met i32) (local $apart i64)
  (local $then i32)
  (local.set $apart (i64.and (i64.xor (local.get $earlier) (local.get $mine))
    (i64.const 0x3FFFFFFFF0)))
  (if (i32.or (i64.ge_u (local.get $apart) (i64.const 0x4000))
      (i32.wrap_i64 (i64.and (local.get $earlier) (i64.const 4))))
    (then (unreachable)))
  (local.set $then (call $time_of (local.get $earlier)))
  (if (i32.le_u (local.get $then) (global.get $passed)) (then (return)))
  (if (i32.or (i64.ge_u (local.get $apart) (i64.const 0x200))
      (i32.wrap_i64 (i64.and (local.get $earlier) (i64.const 2))))
    (then (unreachable)))
  (if (i32.and (i32.gt_u (local.get $then) (local.get $met))
      (i64.ne (i64.const 0) (i64.or (local.get $apart)
        (i64.and (local.get $earlier) (i64.const 1)))))
    (then (unreachable))))

;; Flags of an access: the scope of those before it that nothing orders before it.
(func $others (param $known i64) (param $mine i64) (param $met i32) (result i64)
  (local $apart i64) (local $flags i64) (local $then i32)
  (local.set $apart (i64.and (i64.xor (local.get $known) (local.get $mine))
    (i64.const 0x3FFFFFFFF0)))
  (if (i64.ge_u (local.get $apart) (i64.const 0x4000)) (then (return (i64.const 4))))
  (local.set $flags (i64.and (local.get $known) (i64.const 4)))
  (local.set $then (call $time_of (local.get $known)))
  (if (i32.le_u (local.get $then) (global.get $passed)) (then (return (local.get $flags))))
  (local.set $flags (i64.or (local.get $flags) (i64.and (local.get $known) (i64.const 2))))
  (if (i64.ge_u (local.get $apart) (i64.const 0x200))
    (then (return (i64.or (local.get $flags) (i64.const 2)))))
  (if (i32.gt_u (local.get $then) (local.get $met)) (then
    (local.set $flags (i64.or (local.get $flags) (i64.or
      (i64.extend_i32_u (i64.ne (local.get $apart) (i64.const 0)))
      (i64.and (local.get $known) (i64.const 1)))))))
  (local.get $flags))

(func $compared (param $earlier i64) (param $mine i64) (param $met i32)
  (if (i64.ne (local.get $earlier) (i64.const 0)) (then
    (global.set $ordered (i64.add (global.get $ordered) (i64.const 1)))
    (call $require (local.get $earlier) (local.get $mine) (local.get $met)))))

;; An access of a thread to the element of a cell, after accesses {writer, reader}.
(func $cell_load (param $p i32) (param $mine i64) (param $met i32) (param $writer i64)
  (param $reader i64)
  (call $compared (local.get $writer) (local.get $mine) (local.get $met))
  (i64.store offset=8 (local.get $p) (local.get $mine))
  (if (i64.ne (local.get $reader) (i64.const 0)) (then
    (i64.store offset=8 (local.get $p) (i64.or (local.get $mine)
      (call $others (local.get $reader) (local.get $mine) (local.get $met)))))))

(func $cell_store (param $p i32) (param $mine i64) (param $met i32) (param $writer i64)
  (param $reader i64)
  (call $compared (local.get $writer) (local.get $mine) (local.get $met))
  (call $compared (local.get $reader) (local.get $mine) (local.get $met))
  (i64.store (local.get $p) (local.get $mine)))

(func $cell_atomic (param $p i32) (param $mine i64) (param $met i32) (param $writer i64)
  (param $reader i64)
  (call $compared (local.get $reader) (local.get $mine) (local.get $met))
  (local.set $mine (i64.or (local.get $mine) (i64.const 8)))
  (if (i64.eqz (local.get $writer))
    (then (i64.store (local.get $p) (local.get $mine)) (return)))
  (if (i64.eqz (i64.and (local.get $writer) (i64.const 8))) (then
    (call $compared (local.get $writer) (local.get $mine) (local.get $met))
    (if (i32.gt_u (call $time_of (local.get $writer)) (global.get $passed)) (then (unreachable)))
    (i64.store (local.get $p) (i64.or (local.get $mine) (i64.const 0x4000000000000000)))
    (return)))
  (if (i32.and (i64.ne (local.get $writer)
        (i64.and (local.get $writer) (i64.const 0xBFFFFFFFFFFFFFFF)))
      (i64.ne (i64.const 0) (i64.and (i64.const 0x3FFFFFC000)
        (i64.xor (local.get $writer) (local.get $mine)))))
    (then (unreachable)))
  (i64.store (local.get $p) (i64.or (i64.or (local.get $mine)
    (i64.and (local.get $writer) (i64.const 0x4000000000000000)))
    (call $others (local.get $writer) (local.get $mine) (local.get $met)))))

;; An atomic that adds numbers of floating point: of several threads, in no certain order.
(func $cell_sum (param $p i32) (param $mine i64) (param $met i32) (param $writer i64)
  (param $reader i64)
  (if (i32.and (i32.wrap_i64 (i64.shr_u (local.get $writer) (i64.const 3)))
      (i64.ne (i64.const 0) (i64.and (i64.const 0x3FFFFFFFF0)
        (i64.xor (local.get $writer) (local.get $mine)))))
    (then (unreachable)))
  (call $cell_atomic (local.get $p) (local.get $mine) (local.get $met) (local.get $writer)
    (local.get $reader)))

;; An access of this block's, else 0: the shared memory of each block has the same cells.
(func $of_block (param $earlier i64) (param $mine i64) (result i64)
  (select (local.get $earlier) (i64.const 0) (i64.eqz
    (i64.and (i64.xor (local.get $earlier) (local.get $mine)) (i64.const 0x3FFFFFC000)))))
