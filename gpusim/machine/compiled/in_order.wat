;; Warps in the order of NumPy's machine (`interpreter.py`), where it shows: the splits that stand at one
;; block of code take their turn together, instruction by instruction as far as that shows. The text is
;; that of modules in order alone.
;;
;; A split's key is eight bytes at @ORDER@ of its warp: its position among all splits, and above it
;; the turn in which it ran last. For each block of code there are the least key of the splits that
;; are ready there, -1 if none is, and a bit for each row with one. The group of a turn is a list of
;; {warp, position}. Bits of a block of code: 1 it is in a loop that touches no memory and meets
;; nobody, 2 a loop that swaps begins there, 4 its first instruction waits for lanes.

(global $first_warp (mut i32) (i32.const 0))
(global $warp_size (mut i32) (i32.const 0))
(global $of_block (mut i32) (i32.const 0)) ;; warps
(global $rows (mut i32) (i32.const 0))
(global $bits (mut i32) (i32.const 0))
(global $bit_bytes (mut i32) (i32.const 0)) ;; of a block of code, a multiple of 8
(global $keys (mut i32) (i32.const 0))
(global $list (mut i32) (i32.const 0))
(global $list_end (mut i32) (i32.const 0))
(global $turn (mut i32) (i32.const 0)) ;; the number of turns
(global $positions (mut i32) (i32.const 0)) ;; the next one
(global $held (mut i32) (i32.const 0)) ;; splits
(global $apart (mut i32) (i32.const 0)) ;; warps of several splits
(global $is_diverged (mut i32) (i32.const 0)) ;; whether there was one as the turn began
(global $steps (mut i32) (i32.const 0)) ;; instructions, each once for its group
(global $idle (mut i32) (i32.const 0)) ;; warps that have run since memory was written
;; What a warp tells of its part of a turn: whether its group goes on, whether lanes have arrived or
;; left, the block behind a jump.
(global $goes_on (mut i32) (i32.const 0))
(global $settles (mut i32) (i32.const 0))
(global $jumped (mut i32) (i32.const 0))
;; Whether lanes are only asked if they miss others, and whether some do.
(global $asks (mut i32) (i32.const 0))
(global $misses (mut i32) (i32.const 0))

(func $key_at (param $W i32) (param $i i32) (result i32)
  (i32.add (i32.const @ORDER@) (i32.add (local.get $W) (i32.shl (local.get $i) (i32.const 3)))))

(func $appended (param $W i32) (param $i i32)
  (i64.store (call $key_at (local.get $W) (local.get $i)) (i64.or
    (i64.shl (i64.extend_i32_u (global.get $turn)) (i64.const 32))
    (i64.extend_i32_u (global.get $positions))))
  (global.set $positions (i32.add (global.get $positions) (i32.const 1)))
  (global.set $held (i32.add (global.get $held) (i32.const 1)))
  (global.set $apart
    (i32.add (global.get $apart) (i32.eq (local.get $i) (i32.const 1)))))

(func $removed (param $W i32) (param $i i32) (param $last i32)
  (i64.store (call $key_at (local.get $W) (local.get $i))
    (i64.load (call $key_at (local.get $W) (local.get $last))))
  (global.set $held (i32.sub (global.get $held) (i32.const 1)))
  (global.set $apart
    (i32.sub (global.get $apart) (i32.eq (local.get $last) (i32.const 1)))))

;; A split takes in another: it has the place of the first of both.
(func $united (param $W i32) (param $S i32) (param $O i32)
  (local.set $S (call $key_at (local.get $W)
    (i32.shr_u (i32.sub (local.get $S) (local.get $W)) (i32.const 4))))
  (local.set $O (call $key_at (local.get $W)
    (i32.shr_u (i32.sub (local.get $O) (local.get $W)) (i32.const 4))))
  (if (i32.lt_u (i32.load (local.get $O)) (i32.load (local.get $S))) (then
    (i64.store (local.get $S) (i64.load (local.get $O))))))

(func $warp_of (param $row i32) (result i32)
  (i32.add (global.get $first_warp) (i32.mul (local.get $row) (global.get $warp_size))))

(func $flags (param $block i32) (result i32)
  (i32.load8_u offset=@FLAGS@ (local.get $block)))

;; Whether split $i of a warp is ready at a block of code.
(func $is_at (param $W i32) (param $i i32) (param $block i32) (result i32) (local $S i32)
  (local.set $S (i32.add (local.get $W) (i32.shl (local.get $i) (i32.const 4))))
  (i32.and
    (i32.eqz (i32.load offset=72 (local.get $S)))
    (i32.eq (local.get $block) (i32.load offset=64 (local.get $S)))))

;; Enter split $i of a warp, which is ready at a block of code.
(func $enter (param $W i32) (param $i i32) (param $block i32) (local $at i32) (local $key i64)
  (local $row i32)
  (local.set $row (i32.load offset=44 (local.get $W)))
  (local.set $at (i32.add (i32.shr_u (local.get $row) (i32.const 3)) (i32.add (global.get $bits)
    (i32.mul (local.get $block) (global.get $bit_bytes)))))
  (i32.store8 (local.get $at) (i32.or (i32.load8_u (local.get $at))
    (i32.shl (i32.const 1) (i32.and (local.get $row) (i32.const 7)))))
  (local.set $at (i32.add (global.get $keys) (i32.shl (local.get $block) (i32.const 3))))
  (local.set $key (i64.load (call $key_at (local.get $W) (local.get $i))))
  (if (i64.lt_u (local.get $key) (i64.load (local.get $at)))
    (then (i64.store (local.get $at) (local.get $key)))))

(func $enter_all (param $W i32) (local $i i32) (local $S i32)
  (local.set $S (local.get $W))
  (block $done (loop $next
    (br_if $done (i32.ge_u (local.get $i) (i32.load (local.get $W))))
    (if (i32.eqz (i32.load offset=72 (local.get $S)))
      (then (call $enter (local.get $W) (local.get $i) (i32.load offset=64 (local.get $S)))))
    (local.set $i (i32.add (local.get $i) (i32.const 1)))
    (local.set $S (i32.add (local.get $S) (i32.const 16)))
    (br $next))))

(func $enlist (param $W i32) (param $i i32) (local $at i32)
  (local.set $at (call $key_at (local.get $W) (local.get $i)))
  (i32.store offset=4 (local.get $at) (global.get $turn))
  (i32.store (global.get $list_end) (local.get $W))
  (i32.store offset=4 (global.get $list_end) (i32.load (local.get $at)))
  (global.set $list_end (i32.add (global.get $list_end) (i32.const 8))))

;; The split of a warp that goes first at a block of code: by position, or by its lowest lane; of
;; those whose position is at least $least. -1 if there is none.
(func $first_at (param $W i32) (param $block i32) (param $least i32) (param $by_lane i32)
  (result i32) (local $i i32) (local $found i32) (local $lowest i32) (local $key i32)
  (local.set $found (i32.const -1))
  (local.set $lowest (i32.const -1))
  (block $done (loop $next
    (br_if $done (i32.ge_u (local.get $i) (i32.load (local.get $W))))
    (if (call $is_at (local.get $W) (local.get $i) (local.get $block)) (then
      (local.set $key (i32.load (call $key_at (local.get $W) (local.get $i))))
      (if (i32.ge_u (local.get $key) (local.get $least)) (then
        (if (local.get $by_lane) (then (local.set $key (i32.ctz (i32.load offset=68
          (i32.add (local.get $W) (i32.shl (local.get $i) (i32.const 4))))))))
        (if (i32.lt_u (local.get $key) (local.get $lowest)) (then
          (local.set $lowest (local.get $key))
          (local.set $found (local.get $i))))))))
    (local.set $i (i32.add (local.get $i) (i32.const 1)))
    (br $next)))
  (local.get $found))

;; Put the splits of a warp at a block of code on the list: one, or all.
(func $enlist_warp (param $W i32) (param $block i32) (param $one i32) (result i32)
  (local $i i32) (local $least i32)
  (local.set $i (call $first_at (local.get $W) (local.get $block) (i32.const 0) (local.get $one)))
  (if (i32.lt_s (local.get $i) (i32.const 0)) (then (return (i32.const 0))))
  (call $enlist (local.get $W) (local.get $i))
  (if (i32.eq (i32.load (local.get $W)) (i32.const 1)) (then (return (i32.const 0))))
  (if (local.get $one) (then
    (local.set $least (i32.const 0))
    (block $done (loop $next
      (br_if $done (i32.ge_u (local.get $least) (i32.load (local.get $W))))
      (if (i32.ne (local.get $least) (local.get $i)) (then
        (if (call $is_at (local.get $W) (local.get $least) (local.get $block)) (then
          (call $enter (local.get $W) (local.get $least) (local.get $block))
          (local.set $one (i32.const 2))))))
      (local.set $least (i32.add (local.get $least) (i32.const 1)))
      (br $next)))
    (return (i32.eq (local.get $one) (i32.const 2)))))
  (loop $next
    (local.set $least (i32.add (i32.const 1)
      (i32.load (call $key_at (local.get $W) (local.get $i)))))
    (local.set $i
      (call $first_at (local.get $W) (local.get $block) (local.get $least) (i32.const 0)))
    (if (i32.ge_s (local.get $i) (i32.const 0)) (then
      (call $enlist (local.get $W) (local.get $i))
      (br $next))))
  (i32.const 0))

;; Whether a row is in the first half of its block.
(func $half (param $row i32) (result i32)
  (i32.lt_u (i32.rem_u (local.get $row) (global.get $of_block))
    (i32.shr_u (global.get $of_block) (i32.const 1))))

;; The row of the split with a key that is ready at a block of code.
(func $row_of (param $block i32) (param $key i64) (result i32) (local $row i32) (local $W i32)
  (local $i i32)
  (local.set $W (global.get $first_warp))
  (loop $next
    (local.set $i (i32.const 0))
    (block $done (loop $each
      (br_if $done (i32.ge_u (local.get $i) (i32.load (local.get $W))))
      (if (call $is_at (local.get $W) (local.get $i) (local.get $block)) (then
        (if (i64.eq (local.get $key) (i64.load (call $key_at (local.get $W) (local.get $i))))
          (then (return (local.get $row))))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br $each)))
    (local.set $W (i32.add (local.get $W) (global.get $warp_size)))
    (br_if $next (i32.lt_u (local.tee $row (i32.add (local.get $row) (i32.const 1)))
      (global.get $rows))))
  (unreachable))

;; Make the list of the splits at a block of code that take a turn, row by row; others stay there.
;; With $one, of each warp one does; in a loop that swaps ($key is its first one's) half of a block.
(func $collect (param $block i32) (param $one i32) (param $key i64)
  (local $at i32) (local $end i32) (local $word i64) (local $row i32) (local $halves i32)
  (local $first_half i32)
  (global.set $turn (i32.add (global.get $turn) (i32.const 1)))
  (global.set $list_end (global.get $list))
  (if (i32.eqz (local.get $one)) (then
    (if (i32.and (i32.gt_u (global.get $of_block) (i32.const @TOGETHER@))
        (i32.and (call $flags (local.get $block)) (i32.const 2))) (then
      (local.set $halves (i32.const 1))
      (local.set $first_half
        (call $half (call $row_of (local.get $block) (local.get $key))))))))
  (i64.store (i32.add (global.get $keys) (i32.shl (local.get $block) (i32.const 3)))
    (i64.const -1))
  (local.set $at (i32.add (global.get $bits)
    (i32.mul (local.get $block) (global.get $bit_bytes))))
  (local.set $end (i32.add (local.get $at) (global.get $bit_bytes)))
  (local.set $row (i32.const 0))
  (loop $next
    (local.set $word (i64.load (local.get $at)))
    (if (i64.ne (local.get $word) (i64.const 0)) (then
      (i64.store (local.get $at) (i64.const 0))
      (loop $each
        (call $collect_row (i32.add (local.get $row)
          (i32.wrap_i64 (i64.ctz (local.get $word)))) (local.get $block) (local.get $one)
          (local.get $halves) (local.get $first_half))
        (br_if $each (i64.ne (i64.const 0) (local.tee $word
          (i64.and (local.get $word) (i64.sub (local.get $word) (i64.const 1)))))))))
    (local.set $row (i32.add (local.get $row) (i32.const 64)))
    (br_if $next (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 8)))
      (local.get $end)))))

(func $collect_row (param $row i32) (param $block i32) (param $one i32) (param $halves i32)
  (param $first_half i32) (local $W i32) (local $i i32)
  (local.set $W (call $warp_of (local.get $row)))
  (if (local.get $halves) (then
    (if (i32.ne (call $half (local.get $row)) (local.get $first_half)) (then
      (block $done (loop $next
        (br_if $done (i32.ge_u (local.get $i) (i32.load (local.get $W))))
        (if (call $is_at (local.get $W) (local.get $i) (local.get $block))
          (then (call $enter (local.get $W) (local.get $i) (local.get $block))))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br $next)))
      (return)))))
  (drop (call $enlist_warp (local.get $W) (local.get $block) (local.get $one))))

;; Choose the group of the next turn: 0 if no split is ready. Where warps wait for others it is that
;; of the split that has waited longest, first of those in loops that touch nothing.
(func $choose_waiting (result i32) (local $block i32) (local $key i64) (local $is_pure i32)
  (local $found i32) (local $least i64) (local $among i32)
  (local.set $least (i64.const -1))
  (loop $next
    (local.set $key (i64.load (i32.add (global.get $keys)
      (i32.shl (local.get $block) (i32.const 3)))))
    (if (i64.ne (local.get $key) (i64.const -1)) (then
      (local.set $is_pure (i32.and (call $flags (local.get $block)) (i32.const 1)))
      (if (i32.or (i32.gt_u (local.get $is_pure) (local.get $among))
          (i32.and (i32.eq (local.get $is_pure) (local.get $among))
            (i64.lt_u (local.get $key) (local.get $least)))) (then
        (local.set $among (local.get $is_pure))
        (local.set $least (local.get $key))
        (local.set $found (local.get $block))))))
    (br_if $next (i32.lt_u (local.tee $block (i32.add (local.get $block) (i32.const 1)))
      (i32.const @BLOCKS@))))
  (if (i64.eq (local.get $least) (i64.const -1)) (then (return (i32.const 0))))
  (call $collect (local.get $found) (i32.const 0) (local.get $least))
  (i32.const 1))

;; The ready split of a warp that goes first, by block of code and lane: -1 if there is none.
(func $first_of (param $W i32) (result i32) (local $i i32) (local $found i32) (local $least i32)
  (local $key i32) (local $S i32)
  (local.set $found (i32.const -1))
  (local.set $least (i32.const -1))
  (local.set $S (local.get $W))
  (block $done (loop $next
    (br_if $done (i32.ge_u (local.get $i) (i32.load (local.get $W))))
    (if (i32.eqz (i32.load offset=72 (local.get $S))) (then
      (local.set $key (i32.or (i32.shl (i32.load offset=64 (local.get $S)) (i32.const 5))
        (i32.ctz (i32.load offset=68 (local.get $S)))))
      (if (i32.lt_u (local.get $key) (local.get $least)) (then
        (local.set $least (local.get $key))
        (local.set $found (local.get $i))))))
    (local.set $i (i32.add (local.get $i) (i32.const 1)))
    (local.set $S (i32.add (local.get $S) (i32.const 16)))
    (br $next)))
  (local.get $found))

;; The block of code of the first split of a warp that has waited longest, -1 unless all splits that
;; are ready there are the first of their warps.
(func $longest_waiting (result i32) (local $W i32) (local $row i32) (local $i i32) (local $least i32)
  (local $block i32) (local $ran i32) (local $n i32)
  (local.set $least (i32.const -1))
  (local.set $block (i32.const -1))
  (local.set $W (global.get $first_warp))
  (loop $next
    (local.set $i (call $first_of (local.get $W)))
    (if (i32.ge_s (local.get $i) (i32.const 0)) (then
      (local.set $ran (i32.load offset=4 (call $key_at (local.get $W) (local.get $i))))
      (if (i32.lt_u (local.get $ran) (local.get $least)) (then
        (local.set $least (local.get $ran))
        (local.set $block (i32.load offset=64
          (i32.add (local.get $W) (i32.shl (local.get $i) (i32.const 4)))))))))
    (local.set $W (i32.add (local.get $W) (global.get $warp_size)))
    (br_if $next (i32.lt_u (local.tee $row (i32.add (local.get $row) (i32.const 1)))
      (global.get $rows))))
  (if (i32.lt_s (local.get $block) (i32.const 0)) (then (return (i32.const -1))))
  (local.set $row (i32.const 0))
  (local.set $W (global.get $first_warp))
  (loop $next
    (local.set $i (i32.const 0))
    (local.set $n (i32.const 0))
    (block $done (loop $each
      (br_if $done (i32.ge_u (local.get $i) (i32.load (local.get $W))))
      (local.set $n (i32.add (local.get $n)
        (call $is_at (local.get $W) (local.get $i) (local.get $block))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br $each)))
    (if (local.get $n) (then
      (if (i32.or (i32.gt_u (local.get $n) (i32.const 1))
          (i32.eqz (call $is_at (local.get $W) (call $first_of (local.get $W))
            (local.get $block))))
        (then (return (i32.const -1))))))
    (local.set $W (i32.add (local.get $W) (global.get $warp_size)))
    (br_if $next (i32.lt_u (local.tee $row (i32.add (local.get $row) (i32.const 1)))
      (global.get $rows))))
  (local.get $block))

;; Elsewhere it is that of the splits that are furthest behind, of each warp one; in some turns that
;; of a warp that has waited longest.
(func $choose_behind (result i32) (local $block i32)
  (local.set $block (i32.const -1))
  (if (i32.eqz (i32.rem_u (global.get $turn) (i32.const @FAIR_TURNS@)))
    (then (local.set $block (call $longest_waiting))))
  (if (i32.lt_s (local.get $block) (i32.const 0)) (then
    (block $found (loop $next
      (local.set $block (i32.add (local.get $block) (i32.const 1)))
      (if (i32.ge_u (local.get $block) (i32.const @BLOCKS@)) (then (return (i32.const 0))))
      (br_if $found (i64.ne (i64.const -1) (i64.load (i32.add (global.get $keys)
        (i32.shl (local.get $block) (i32.const 3))))))
      (br $next)))))
  (call $collect (local.get $block) (i32.const 1) (i64.const 0))
  (i32.const 1))

(func $index_of (param $W i32) (param $position i32) (result i32) (local $i i32)
  (loop $next
    (if (i32.eq (local.get $position) (i32.load (call $key_at (local.get $W) (local.get $i))))
      (then (return (local.get $i))))
    (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1)))
      (i32.load (local.get $W)))))
  (unreachable))

;; A group of all splits: they stand in its order.
(func $arrange (local $at i32) (local $n i32)
  (if (i32.ne (i32.shr_u (i32.sub (global.get $list_end) (global.get $list)) (i32.const 3))
      (global.get $held)) (then (return)))
  (local.set $at (i32.add (global.get $list) (i32.const 8)))
  (block $apart
    (loop $next
      (if (i32.ge_u (local.get $at) (global.get $list_end)) (then (return)))
      (br_if $apart (i32.lt_u (i32.load offset=4 (local.get $at))
        (i32.load offset=4 (i32.sub (local.get $at) (i32.const 8)))))
      (local.set $at (i32.add (local.get $at) (i32.const 8)))
      (br $next)))
  (local.set $n (global.get $positions))
  (local.set $at (global.get $list))
  (loop $next
    (i32.store
      (call $key_at (i32.load (local.get $at))
        (call $index_of (i32.load (local.get $at)) (i32.load offset=4 (local.get $at))))
      (local.get $n))
    (i32.store offset=4 (local.get $at) (local.get $n))
    (local.set $n (i32.add (local.get $n) (i32.const 1)))
    (br_if $next (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 8)))
      (global.get $list_end))))
  (global.set $positions (local.get $n)))

;; Run the group as far as all of it goes together.
(func $run_group (local $at i32) (local $W i32) (local $before i32) (local $after i32)
  (local.set $before (global.get $steps))
  (local.set $after (i32.const -1))
  (global.set $goes_on (i32.const 0))
  (local.set $at (global.get $list))
  (loop $next
    (local.set $W (i32.load (local.get $at)))
    (global.set $steps (local.get $before))
    (call $warp (local.get $W)
      (call $index_of (local.get $W) (i32.load offset=4 (local.get $at))))
    (if (i32.eq (local.get $at) (global.get $list))
      (then (local.set $after (global.get $steps))))
    (br_if $next (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 8)))
      (global.get $list_end))))
  (global.set $idle (i32.add (global.get $idle) (i32.shr_u
    (i32.sub (global.get $list_end) (global.get $list)) (i32.const 3))))
  (global.set $steps (local.get $after)))

;; Whether other lanes of the group's warps are behind a block of code, or there.
(func $gives_way (param $block i32) (result i32) (local $at i32) (local $W i32) (local $i i32)
  (local $S i32)
  (local.set $at (global.get $list))
  (loop $next
    (local.set $W (i32.load (local.get $at)))
    (local.set $i (i32.const 0))
    (local.set $S (local.get $W))
    (block $done (loop $each
      (br_if $done (i32.ge_u (local.get $i) (i32.load (local.get $W))))
      (if (i32.and
          (i32.and
            (i32.eqz (i32.load offset=72 (local.get $S)))
            (i32.le_u (i32.load offset=64 (local.get $S)) (local.get $block)))
          (i32.ne (global.get $turn)
            (i32.load offset=4 (call $key_at (local.get $W) (local.get $i)))))
        (then (return (i32.const 1))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (local.set $S (i32.add (local.get $S) (i32.const 16)))
      (br $each)))
    (br_if $next (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 8)))
      (global.get $list_end))))
  (i32.const 0))

;; A turn of the group.
(func $take_turn (local $block i32) (local $W i32) (local $i i32) (local $steps i32)
  (global.set $is_diverged (global.get $apart))
  (global.set $settles (i32.const 0))
  (global.set $jumped (i32.const 0))
  (local.set $i (i32.const -1))
  (block $over (loop $next
    (local.set $W (i32.load (global.get $list)))
    (local.set $block (i32.load offset=64 (i32.add (local.get $W) (i32.shl
      (call $index_of (local.get $W) (i32.load offset=4 (global.get $list))) (i32.const 4)))))
    (if (global.get $is_diverged) (then
      (if (i32.and (call $flags (local.get $block)) (i32.const 4)) (then
        (local.set $steps (global.get $steps))
        (if (i32.eqz (local.get $i)) (then
          (if (call $gives_way (local.get $block)) (then
            (global.set $steps (i32.add (local.get $steps) (i32.const 1)))
            (br $over)))))
        (global.set $asks (i32.const 1))
        (global.set $misses (i32.const 0))
        (call $run_group)
        (global.set $asks (i32.const 0))
        (global.set $steps (i32.add (local.get $steps) (global.get $misses)))
        (br_if $over (global.get $misses))))))
    (local.set $i (i32.const 0))
    (call $run_group)
    (br_if $next (global.get $goes_on))))
  (if (global.get $jumped) (then (call $arrange_jumped)))
  (call $enter_group))

;; Lanes that have jumped stand behind all others, target by target, unless all have gone to one.
(func $arrange_jumped (local $at i32) (local $W i32) (local $i i32) (local $S i32)
  (local $target i32) (local $last i32) (local $many i32) (local $stays i32)
  (local.set $last (i32.const -1))
  (local.set $stays (global.get $jumped))
  (loop $again
    (local.set $target (i32.const 0x7FFFFFFF))
    (local.set $at (global.get $list))
    (loop $next
      (local.set $W (i32.load (local.get $at)))
      (local.set $i (i32.const 0))
      (block $done (loop $each
        (br_if $done (i32.ge_u (local.get $i) (i32.load (local.get $W))))
        (if (i32.eq (global.get $turn)
            (i32.load offset=4 (call $key_at (local.get $W) (local.get $i)))) (then
          (local.set $S (i32.load offset=64
            (i32.add (local.get $W) (i32.shl (local.get $i) (i32.const 4)))))
          (if (i32.eq (local.get $S) (local.get $stays))
            (then (local.set $many (i32.const 2)))
            (else
              (if (i32.and (i32.gt_s (local.get $S) (local.get $last))
                  (i32.lt_s (local.get $S) (local.get $target)))
                (then (local.set $target (local.get $S))))
              (if (i32.and (i32.eq (local.get $S) (local.get $last))
                  (i32.eq (local.get $many) (i32.const 2))) (then
                (i32.store (call $key_at (local.get $W) (local.get $i)) (global.get $positions))
                (global.set $positions
                  (i32.add (global.get $positions) (i32.const 1)))))))))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br $each)))
      (block $other (loop $same
        (local.set $at (i32.add (local.get $at) (i32.const 8)))
        (br_if $other (i32.ge_u (local.get $at) (global.get $list_end)))
        (br_if $same (i32.eq (local.get $W) (i32.load (local.get $at))))))
      (br_if $next (i32.lt_u (local.get $at) (global.get $list_end))))
    (if (i32.ne (local.get $target) (i32.const 0x7FFFFFFF)) (then
      (if (i32.and (i32.ge_s (local.get $last) (i32.const 0))
          (i32.lt_u (local.get $many) (i32.const 2))) (then
        ;; There are several targets: begin again, with new positions.
        (local.set $many (i32.const 2))
        (local.set $target (i32.const -1))))
      (local.set $last (local.get $target))
      (br $again)))))

;; Let the group's splits be found where they stand now, and open barriers that all have come to.
(func $enter_group (local $at i32) (local $W i32) (local $block i32) (local $row i32)
  (local.set $block (i32.const -1))
  (local.set $at (global.get $list))
  (loop $next
    (if (i32.ne (local.get $W) (i32.load (local.get $at))) (then
      (local.set $W (i32.load (local.get $at)))
      (call $enter_all (local.get $W))
      (if (global.get $settles) (then
        (local.set $row (i32.div_u (i32.load offset=44 (local.get $W)) (global.get $of_block)))
        (if (i32.ne (local.get $row) (local.get $block)) (then
          (if (i32.ge_s (local.get $block) (i32.const 0))
            (then (call $settle (local.get $block))))
          (local.set $block (local.get $row))))))))
    (br_if $next (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 8)))
      (global.get $list_end))))
  (if (i32.ge_s (local.get $block) (i32.const 0)) (then (call $settle (local.get $block)))))

;; Open the barrier of a block if all of its splits are there.
(func $settle (param $block i32) (local $first i32) (local $end i32) (local $W i32) (local $i i32)
  (local $S i32) (local $live i32)
  (local.set $first (call $warp_of (i32.mul (local.get $block) (global.get $of_block))))
  (local.set $end (i32.add (local.get $first)
    (i32.mul (global.get $warp_size) (global.get $of_block))))
  (local.set $W (local.get $first))
  (loop $next
    (local.set $i (i32.const 0))
    (local.set $S (local.get $W))
    (block $done (loop $each
      (br_if $done (i32.ge_u (local.get $i) (i32.load (local.get $W))))
      (local.set $live (i32.const 1))
      (if (i32.ne (i32.const 1) (i32.load offset=72 (local.get $S))) (then (return)))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (local.set $S (i32.add (local.get $S) (i32.const 16)))
      (br $each)))
    (br_if $next (i32.lt_u (local.tee $W (i32.add (local.get $W) (global.get $warp_size)))
      (local.get $end))))
  (if (i32.eqz (local.get $live)) (then (return)))
  (call $opened (local.get $first))
  (local.set $W (local.get $first))
  (loop $next
    (local.set $i (i32.const 0))
    (local.set $S (local.get $W))
    (block $done (loop $each
      (br_if $done (i32.ge_u (local.get $i) (i32.load (local.get $W))))
      (i32.store offset=64 (local.get $S)
        (i32.add (i32.load offset=64 (local.get $S)) (i32.const 1)))
      (i32.store offset=72 (local.get $S) (i32.const 0))
      (i32.store offset=76 (local.get $S) (i32.const 0))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (local.set $S (i32.add (local.get $S) (i32.const 16)))
      (br $each)))
    (call $enter_all (local.get $W))
    (br_if $next (i32.lt_u (local.tee $W (i32.add (local.get $W) (global.get $warp_size)))
      (local.get $end)))))

;; Set the warps of blocks to their start.
(func $begin_all (param $entry i32) (param $blocks i32) (param $shared_bytes i32) (local $W i32) (local $w i32)
  (local.set $W (global.get $first_warp))
  (loop $next
    (memory.fill (i32.load offset=32 (local.get $W)) (i32.const 0) (local.get $shared_bytes))
    (local.set $w (global.get $of_block))
    (loop $warp
      (call $begin (local.get $W) (local.get $entry))
      (i64.store (call $key_at (local.get $W) (i32.const 0))
        (i64.extend_i32_u (i32.load offset=44 (local.get $W))))
      (local.set $W (i32.add (local.get $W) (global.get $warp_size)))
      (br_if $warp (local.tee $w (i32.sub (local.get $w) (i32.const 1)))))
    (local.set $entry (i32.add (local.get $entry) (i32.const 16)))
    (br_if $next (local.tee $blocks (i32.sub (local.get $blocks) (i32.const 1))))))

;; Run blocks turn by turn, from their numbers in memory (`Launched`). 0: all warps have ended; 1: none
;; goes on; 3: they have taken as many steps as they may; 4: memory stays as it is for too long.
(func $run_in_order (param $at i32) (result i32) (local $W i32) (local $row i32) (local $most i32)
  (global.set $first_warp (i32.load offset=32 (local.get $at)))
  (global.set $warp_size (i32.load offset=36 (local.get $at)))
  (global.set $of_block (i32.load offset=40 (local.get $at)))
  (global.set $rows (i32.mul (global.get $of_block) (i32.load offset=44 (local.get $at))))
  (global.set $bit_bytes (i32.shl (i32.shr_u (i32.add (global.get $rows) (i32.const 63))
    (i32.const 6)) (i32.const 3)))
  (global.set $keys (i32.load offset=72 (local.get $at)))
  (global.set $bits (i32.add (global.get $keys) (i32.const @KEY_BYTES@)))
  (global.set $list (i32.add (global.get $bits)
    (i32.mul (global.get $bit_bytes) (i32.const @BLOCKS@))))
  (global.set $turn (i32.load offset=76 (local.get $at)))
  (global.set $steps (i32.load offset=80 (local.get $at)))
  (local.set $most (i32.load offset=84 (local.get $at)))
  (global.set $idle (i32.const 0))
  (global.set $asks (i32.const 0))
  (global.set $held (i32.const 0))
  (global.set $apart (i32.const 0))
  (if (i32.load offset=28 (local.get $at)) (then
    (call $begin_all (i32.load offset=48 (local.get $at)) (i32.load offset=44 (local.get $at))
      (i32.load offset=56 (local.get $at)))))
  (memory.fill (global.get $keys) (i32.const 255) (i32.const @KEY_BYTES@))
  (memory.fill (global.get $bits) (i32.const 0)
    (i32.sub (global.get $list) (global.get $bits)))
  (local.set $W (global.get $first_warp))
  (loop $next
    (global.set $held (i32.add (global.get $held) (i32.load (local.get $W))))
    (global.set $apart (i32.add (global.get $apart)
      (i32.gt_u (i32.load (local.get $W)) (i32.const 1))))
    (call $enter_all (local.get $W))
    (local.set $W (i32.add (local.get $W) (global.get $warp_size)))
    (br_if $next (i32.lt_u (local.tee $row (i32.add (local.get $row) (i32.const 1)))
      (global.get $rows))))
  (global.set $positions (global.get $held))
  (loop $next
    (if (i32.eqz (call @CHOOSE@))
      (then (return (i32.ne (global.get $held) (i32.const 0)))))
    (call $arrange)
    (call $take_turn)
    (if (i32.eqz (global.get $held)) (then (return (i32.const 0))))
    (if (i32.ge_s (global.get $steps) (local.get $most)) (then (return (i32.const 3))))
    (if (i32.ge_u (global.get $idle) (i32.const @MOST_IDLE@)) (then (return (i32.const 4))))
    (br $next))
  (unreachable))
