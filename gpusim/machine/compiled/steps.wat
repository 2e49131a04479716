;; Steps written down in every module that an observer of steps listens to: a record for each run of
;; a basic block, and one for each of its instructions that may be off, decides, or accesses memory.

(global $blocks_run (export "blocks_run") (mut i32) (i32.const 0))
(global $blocks_full (export "blocks_full") (mut i32) (i32.const 0))
(global $details (export "details") (mut i32) (i32.const 0))
(global $details_full (export "details_full") (mut i32) (i32.const 0))
(global $runs (export "runs") (mut i32) (i32.const 0))
(global $runs_full (export "runs_full") (mut i32) (i32.const 0))

;; A warp begins a basic block with some lanes: 16 bytes {pc, row, lanes, details so far}.
(func $begun (param $W i32) (param $pc i32) (param $lanes i32) (local $at i32)
  (if (i32.or (i32.ge_u (global.get $blocks_run) (global.get $blocks_full))
      (i32.or (i32.ge_u (global.get $details) (global.get $details_full))
        (i32.ge_u (global.get $runs) (global.get $runs_full))))
    (then (call $take_steps)))
  (local.set $at (global.get $blocks_run))
  (i32.store (local.get $at) (local.get $pc))
  (i32.store offset=4 (local.get $at) (i32.load offset=44 (local.get $W)))
  (i32.store offset=8 (local.get $at) (local.get $lanes))
  (i32.store offset=12 (local.get $at) (global.get $details))
  (global.set $blocks_run (i32.add (local.get $at) (i32.const 16))))

;; The barrier of a block opens: a record without a basic block.
(func $opened (param $W i32) (call $begun (local.get $W) (i32.const -1) (i32.const 0)))

;; An instruction with some lanes on, of which some take a branch: 32 bytes {pc, with both in its
;; upper bits; passes, lines, wavefronts, gaps, lowest, lanes of one address, runs}.
(func $decided (param $pc i32) (param $on i32) (param $taken i32)
  (i32.store (global.get $details) (i32.or (local.get $pc) (i32.or
    (i32.shl (i32.ne (local.get $on) (i32.const 0)) (i32.const 30))
    (i32.shl (i32.ne (local.get $taken) (i32.const 0)) (i32.const 31)))))
  (global.set $details (i32.add (global.get $details) (i32.const 32))))

(func $detail (param $pc i32) (param $on i32) (param $passes i32) (param $lines i32)
  (param $wavefronts i32) (param $gaps i32) (param $lowest i32) (param $is_one i32)
  (param $begun i32) (local $at i32)
  (local.set $at (global.get $details))
  (i32.store offset=4 (local.get $at) (local.get $passes))
  (i32.store offset=8 (local.get $at) (local.get $lines))
  (i32.store offset=12 (local.get $at) (local.get $wavefronts))
  (i32.store offset=16 (local.get $at) (local.get $gaps))
  (i32.store offset=20 (local.get $at) (local.get $lowest))
  (i32.store offset=24 (local.get $at) (local.get $is_one))
  (i32.store offset=28 (local.get $at)
    (i32.div_u (i32.sub (global.get $runs) (local.get $begun)) (i32.const 12)))
  (call $decided (local.get $pc) (local.get $on) (i32.const 0)))

;; Bytes touched without an untouched sector between them: 12 bytes {first, last, lanes}.
(func $run_of (param $first i32) (param $last i32) (param $lanes i32)
  (i32.store (global.get $runs) (local.get $first))
  (i32.store offset=4 (global.get $runs) (local.get $last))
  (i32.store offset=8 (global.get $runs) (local.get $lanes))
  (global.set $runs (i32.add (global.get $runs) (i32.const 12))))

;; Replace addresses, or offsets, by 32-bit ones from a place on; of global memory, by the places in
;; linear memory, where lines lie as they did.
(func $narrow (param $begin i64) (local $l i32)
  (loop $next
    (i32.store offset=@IN@ (i32.shl (local.get $l) (i32.const 2))
      (i32.wrap_i64 (i64.sub
        (i64.load offset=@IN@ (i32.shl (local.get $l) (i32.const 3))) (local.get $begin))))
    (br_if $next (i32.lt_u (local.tee $l (i32.add (local.get $l) (i32.const 1))) (i32.const 32)))))

;; Replace addresses of local memory by their places among those of the warp: a word of each lane
;; side by side.
(func $side_by_side (local $l i32) (local $at i32)
  (loop $next
    (local.set $at (i32.shl (local.get $l) (i32.const 2)))
    (i32.store offset=@IN@ (local.get $at) (i32.add (local.get $at)
      (i32.shl (i32.shr_u (i32.load offset=@IN@ (local.get $at)) (i32.const 2)) (i32.const 7))))
    (br_if $next (i32.lt_u (local.tee $l (i32.add (local.get $l) (i32.const 1))) (i32.const 32)))))

;; Put the places of lanes in order; return their number.
(func $sorted (param $on i32) (result i32) (local $n i32) (local $k i32) (local $x i32)
  (block $done (loop $next
    (br_if $done (i32.eqz (local.get $on)))
    (local.set $x (i32.load offset=@IN@ (i32.shl (i32.ctz (local.get $on)) (i32.const 2))))
    (local.set $on (i32.and (local.get $on) (i32.sub (local.get $on) (i32.const 1))))
    (local.set $k (i32.shl (local.get $n) (i32.const 2)))
    (block $here (loop $before
      (br_if $here (i32.eqz (local.get $k)))
      (br_if $here (i32.le_u (i32.load offset=@BEFORE_SORTED@ (local.get $k)) (local.get $x)))
      (i32.store offset=@SORTED@ (local.get $k)
        (i32.load offset=@BEFORE_SORTED@ (local.get $k)))
      (local.set $k (i32.sub (local.get $k) (i32.const 4)))
      (br $before)))
    (i32.store offset=@SORTED@ (local.get $k) (local.get $x))
    (local.set $n (i32.add (local.get $n) (i32.const 1)))
    (br $next)))
  (local.get $n))

;; An access by lanes whose places are set: to memory behind the L1 in sectors and lines, of `width`
;; bytes a lane, or `times` words side by side in local memory. Kinds: 0 load, 1 store, 2 atomic.
(func $accessed (param $pc i32) (param $on i32) (param $width i32) (param $times i32)
  (param $kind i32) (param $wants_runs i32)
  (local $n i32) (local $k i32) (local $x i32) (local $last i32) (local $first i32)
  (local $lanes i32) (local $sectors i32) (local $lines i32) (local $gaps i32) (local $tags i32)
  (local $tag i32) (local $line i32) (local $passes i32) (local $same i32) (local $most i32)
  (local $begun i32) (local $t i32) (local $base i32)
  (local.set $begun (global.get $runs))
  (if (i32.eqz (local.get $on)) (then
    (call $detail (local.get $pc) (local.get $on) (i32.const 0) (i32.const 0) (i32.const 0)
      (i32.const 0) (i32.const -1) (i32.const 0) (local.get $begun))
    (return)))
  (local.set $n (call $sorted (local.get $on)))
  (local.set $base (i32.load (i32.const @SORTED@)))
  (local.set $first (local.get $base)) (local.set $last (local.get $base))
  (local.set $lines (i32.const 1)) (local.set $sectors (i32.const 1))
  (local.set $tags (i32.const 1)) (local.set $lanes (i32.const 1))
  (local.set $same (i32.const 1)) (local.set $most (i32.const 1))
  (local.set $k (i32.const 4))
  (block $done (loop $next
    (br_if $done (i32.ge_u (local.get $k) (i32.shl (local.get $n) (i32.const 2))))
    (local.set $x (i32.load offset=@SORTED@ (local.get $k)))
    (local.set $k (i32.add (local.get $k) (i32.const 4)))
    (if (i32.eq (local.get $x) (local.get $last))
      (then
        (local.set $lanes (i32.add (local.get $lanes) (i32.const 1)))
        (local.set $same (i32.add (local.get $same) (i32.const 1)))
        (if (i32.gt_u (local.get $same) (local.get $most))
          (then (local.set $most (local.get $same))))
        (br $next)))
    (local.set $same (i32.const 1))
    (if (i32.ne (i32.shr_u (local.get $x) (i32.const 5)) (i32.shr_u (local.get $last) (i32.const 5)))
      (then
        (local.set $sectors (i32.add (local.get $sectors) (i32.const 1)))
        (local.set $passes (i32.add (local.get $passes) (local.get $most)))
        (local.set $most (i32.const 1))))
    (local.set $line (i32.sub (i32.shr_u (local.get $x) (i32.const 7))
      (i32.shr_u (local.get $last) (i32.const 7))))
    (if (local.get $line) (then
      (local.set $lines (i32.add (local.get $lines) (i32.const 1)))
      (local.set $gaps (i32.add (local.get $gaps)
        (select (i32.const 1)
          (select (i32.const 256) (i32.const 65536)
            (i32.le_u (local.get $line) (i32.const @MIDDLE_LINES@)))
          (i32.le_u (local.get $line) (i32.const @NEAR_LINES@)))))
      ;; A count of lines for each bank of tags, eight bits each.
      (local.set $tag (i32.sub (i32.shr_u (local.get $x) (i32.const 7))
        (i32.shr_u (local.get $base) (i32.const 7))))
      (local.set $tag (i32.xor (local.get $tag) (i32.shr_u (local.get $tag) (i32.const 16))))
      (local.set $tag (i32.xor (local.get $tag) (i32.shr_u (local.get $tag) (i32.const 8))))
      (local.set $tag (i32.xor (local.get $tag) (i32.shr_u (local.get $tag) (i32.const 4))))
      (local.set $tag (i32.xor (local.get $tag) (i32.shr_u (local.get $tag) (i32.const 2))))
      (local.set $tags (i32.add (local.get $tags) (i32.shl (i32.const 1)
        (i32.shl (i32.and (local.get $tag) (i32.const 3)) (i32.const 3)))))))
    (if (i32.and (local.get $wants_runs) (i32.ge_u (i32.sub (local.get $x) (local.get $last))
        (i32.add (local.get $width) (i32.const 32))))
      (then
        (call $run_of (local.get $first) (local.get $last) (local.get $lanes))
        (local.set $first (local.get $x)) (local.set $lanes (i32.const 0))))
    (local.set $lanes (i32.add (local.get $lanes) (i32.const 1)))
    (local.set $last (local.get $x))
    (br $next)))
  (local.set $passes (i32.add (local.get $passes) (local.get $most)))
  (if (local.get $wants_runs) (then
    (call $run_of (local.get $first) (local.get $last) (local.get $lanes))
    (local.set $lanes (i32.div_u (i32.sub (global.get $runs) (local.get $begun)) (i32.const 12)))
    (local.set $first (local.get $begun))
    (local.set $t (i32.const 1))
    (block $done (loop $word
      (br_if $done (i32.ge_u (local.get $t) (local.get $times)))
      (local.set $k (i32.const 0))
      (loop $each
        (call $run_of
          (i32.add (i32.load (local.get $first)) (i32.shl (local.get $t) (i32.const 7)))
          (i32.add (i32.load offset=4 (local.get $first)) (i32.shl (local.get $t) (i32.const 7)))
          (i32.load offset=8 (local.get $first)))
        (local.set $first (i32.add (local.get $first) (i32.const 12)))
        (br_if $each (i32.lt_u (local.tee $k (i32.add (local.get $k) (i32.const 1)))
          (local.get $lanes))))
      (local.set $first (local.get $begun))
      (local.set $t (i32.add (local.get $t) (i32.const 1)))
      (br $word)))))
  (if (i32.eq (local.get $kind) (i32.const 2)) (then
    (call $detail (local.get $pc) (local.get $on) (local.get $passes) (local.get $sectors)
      (i32.const 0) (i32.const 0) (i32.const -1)
      (i32.eq (i32.load (i32.const @SORTED@)) (local.get $last)) (local.get $begun))
    (return)))
  (local.set $k (local.get $lines))
  (if (i32.eqz (local.get $kind)) (then
    (local.set $k (i32.wrap_i64 (call $wavefronts (local.get $on)
      (select (i32.shr_u (local.get $width) (i32.const 2)) (i32.const 1)
        (i32.gt_u (local.get $width) (i32.const 4)))
      (i32.const 0))))
    (loop $bank
      (local.set $tag (i32.and (local.get $tags) (i32.const 255)))
      (if (i32.gt_u (local.get $tag) (local.get $k)) (then (local.set $k (local.get $tag))))
      (br_if $bank (local.tee $tags (i32.shr_u (local.get $tags) (i32.const 8)))))))
  (call $detail (local.get $pc) (local.get $on)
    (i32.mul (local.get $times) (local.get $sectors))
    (i32.mul (local.get $times) (local.get $lines))
    (i32.mul (local.get $times) (local.get $k))
    (local.get $gaps) (i32.shr_u (local.get $base) (i32.const 7)) (i32.const 0)
    (local.get $begun)))

;; What was told of an access to global memory is true of the next one by the same lanes, as far
;; apart, whole lines further: 304 lanes, 308 the place of the first, 312 what is behind the pc, and
;; 340 the bytes touched, of at most four.
(func $keep_told (param $on i32) (param $slot i32) (local $at i32) (local $n i32)
  (local.set $at (i32.sub (global.get $details) (i32.const 32)))
  (local.set $n (i32.mul (i32.load offset=28 (local.get $at)) (i32.const 12)))
  (i32.store offset=304 (local.get $slot) (i32.const 0))
  (if (i32.gt_u (local.get $n) (i32.const 48)) (then (return)))
  (i32.store offset=304 (local.get $slot) (local.get $on))
  (i32.store offset=308 (local.get $slot) (i32.load (i32.const @IN@)))
  (memory.copy (i32.add (local.get $slot) (i32.const 312))
    (i32.add (local.get $at) (i32.const 4)) (i32.const 28))
  (memory.copy (i32.add (local.get $slot) (i32.const 340))
    (i32.sub (global.get $runs) (local.get $n)) (local.get $n)))

;; Tell an access as the last one; 0 where that is not known.
(func $told_again (param $pc i32) (param $on i32) (param $slot i32) (result i32) (local $at i32)
  (local $by i32) (local $k i32)
  (if (i32.eqz (local.get $on)) (then (return (i32.const 0))))
  (if (i32.ne (local.get $on) (i32.load offset=304 (local.get $slot)))
    (then (return (i32.const 0))))
  (local.set $by (i32.sub
    (i32.wrap_i64 (i64.sub (i64.load (i32.const @IN@)) (global.get $shift)))
    (i32.load offset=308 (local.get $slot))))
  (if (i32.and (local.get $by) (i32.const 127)) (then (return (i32.const 0))))
  (local.set $at (global.get $details))
  (v128.store offset=4 (local.get $at) (v128.load offset=312 (local.get $slot)))
  (local.set $k (i32.load offset=328 (local.get $slot)))
  (i32.store offset=20 (local.get $at) (select (local.get $k)
    (i32.add (local.get $k) (i32.shr_s (local.get $by) (i32.const 7)))
    (i32.lt_s (local.get $k) (i32.const 0))))
  (i64.store offset=24 (local.get $at) (i64.load offset=332 (local.get $slot)))
  (local.set $k (i32.load offset=28 (local.get $at)))
  (local.set $at (i32.add (local.get $slot) (i32.const 340)))
  (block $done (loop $next
    (br_if $done (i32.eqz (local.get $k)))
    (call $run_of
      (i32.add (i32.load (local.get $at)) (local.get $by))
      (i32.add (i32.load offset=4 (local.get $at)) (local.get $by))
      (i32.load offset=8 (local.get $at)))
    (local.set $at (i32.add (local.get $at) (i32.const 12)))
    (local.set $k (i32.sub (local.get $k) (i32.const 1)))
    (br $next)))
  (call $decided (local.get $pc) (local.get $on) (i32.const 0))
  (i32.const 1))

;; A load of constants at offsets in a register: different ones, and the lowest.
(func $looked_up (param $pc i32) (param $on i32) (local $n i32) (local $k i32) (local $x i32)
  (local $different i32)
  (local.set $n (i32.shl (call $sorted (local.get $on)) (i32.const 2)))
  (block $done (loop $next
    (br_if $done (i32.ge_u (local.get $k) (local.get $n)))
    (local.set $x (i32.load offset=@SORTED@ (local.get $k)))
    (if (i32.or (i32.eqz (local.get $k))
        (i32.ne (local.get $x) (i32.load offset=@BEFORE_SORTED@ (local.get $k))))
      (then (local.set $different (i32.add (local.get $different) (i32.const 1)))))
    (local.set $k (i32.add (local.get $k) (i32.const 4)))
    (br $next)))
  (call $detail (local.get $pc) (local.get $on) (local.get $different) (i32.const 0) (i32.const 0)
    (i32.const 0) (select (i32.load (i32.const @SORTED@)) (i32.const -1) (local.get $on))
    (i32.const 0) (global.get $runs)))
