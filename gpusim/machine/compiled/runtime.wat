;; Vector code of every module, for all lanes at once, beside `machine/warps/`; and integer division.
;; Addresses of operands and results are those of `layout.py`.

;; The lanes of a mask from lane $l on, as four masks.
(func $four (param $mask i32) (param $l i32) (result v128)
  (i32x4.ne (v128.const i64x2 0 0) (v128.and (v128.const i32x4 1 2 4 8)
    (i32x4.splat (i32.shr_u (local.get $mask) (local.get $l))))))

;; The lanes whose numbers in a row at an address, and some more, are below those at another one.
(func $below (param $a i32) (param $b i32) (param $more i32) (result i32) (local $l i32)
  (local $m i32)
  (loop $next
    (local.set $m (i32.or (local.get $m) (i32.shl (i32x4.bitmask (i32x4.lt_s
      (i32x4.add (v128.load (i32.add (local.get $a) (local.get $l)))
        (i32x4.splat (local.get $more)))
      (v128.load (i32.add (local.get $b) (local.get $l)))))
      (i32.shr_u (local.get $l) (i32.const 2)))))
    (br_if $next (i32.lt_u (local.tee $l (i32.add (local.get $l) (i32.const 16)))
      (i32.const 128))))
  (local.get $m))

;; Sums as GPUs form them: subnormal numbers of single precision are 0, and a result that is no
;; number has one pattern of bits; of double precision, that of an operand.
(func $flushed (param $x f32) (result f32)
  (select (f32.copysign (f32.const 0) (local.get $x)) (local.get $x)
    (f32.lt (f32.abs (local.get $x)) (f32.const 0x1p-126))))
(func $add_flushed (param $a i32) (param $b i32) (result i32) (local $sum f32)
  (local.set $sum (call $flushed (f32.add (call $flushed (f32.reinterpret_i32 (local.get $a)))
    (call $flushed (f32.reinterpret_i32 (local.get $b))))))
  (select (i32.reinterpret_f32 (local.get $sum)) (i32.const 0x7FFFFFFF)
    (f32.eq (local.get $sum) (local.get $sum))))
(func $add_doubles (param $a i64) (param $b i64) (result i64) (local $sum f64)
  (local.set $sum (f64.add (f64.reinterpret_i64 (local.get $a)) (f64.reinterpret_i64 (local.get $b))))
  (if (f64.eq (local.get $sum) (local.get $sum))
    (then (return (i64.reinterpret_f64 (local.get $sum)))))
  (if (f64.ne (f64.reinterpret_i64 (local.get $b)) (f64.reinterpret_i64 (local.get $b)))
    (then (return (local.get $b))))
  (if (f64.ne (f64.reinterpret_i64 (local.get $a)) (f64.reinterpret_i64 (local.get $a)))
    (then (return (local.get $a))))
  (i64.const 0xFFF8000000000000))

;; Whether lanes access the same word as the lane so far from them, or one of both nothing.
(func $in_pairs (param $on i32) (param $apart i32) (result i32) (local $l i32)
  (local $x v128) (local $differ v128)
  (if (i32.eq (local.get $on) (i32.const -1)) (then
    (loop $next
      (local.set $x (v128.load offset=@IN@ (local.get $l)))
      (local.set $differ (v128.or (local.get $differ) (v128.xor (local.get $x)
        (select
          (i8x16.shuffle 4 5 6 7 0 1 2 3 12 13 14 15 8 9 10 11 (local.get $x) (local.get $x))
          (i8x16.shuffle 8 9 10 11 12 13 14 15 0 1 2 3 4 5 6 7 (local.get $x) (local.get $x))
          (i32.eq (local.get $apart) (i32.const 1))))))
      (br_if $next (i32.lt_u (local.tee $l (i32.add (local.get $l) (i32.const 16)))
        (i32.const 128))))
    (return (i32.eqz (v128.any_true (local.get $differ))))))
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
  (if (i32.ne (i32.load offset=@IN124@ (i32.const 0))
      (i32.add (i32.load offset=@IN@ (i32.const 0)) (i32.mul (local.get $by) (i32.const 31))))
    (then (return (i32.const 0))))
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

;; Whether lanes from $l to before $end, all on, do not name two words of one bank: of several words
;; a lane, each lane has as many banks beside each other. `shift` and `banks` count in such words.
(func $is_free (param $l i32) (param $end i32) (param $shift i32) (param $banks i32) (result i32)
  (local $k i32) (local $x v128) (local $b v128) (local $s v128) (local $differ v128)
  (local.set $s (i32x4.splat (local.get $banks)))
  (local.set $l (i32.shl (local.get $l) (i32.const 2)))
  (local.set $end (i32.shl (local.get $end) (i32.const 2)))
  (local.set $k (local.get $l))
  (loop $next
    (local.set $x (i32x4.shr_u (v128.load offset=@IN@ (local.get $k)) (local.get $shift)))
    (local.set $b (i32x4.shl (v128.and (local.get $x) (local.get $s)) (i32.const 2)))
    (v128.store32_lane offset=@LAST@ 0 (i32x4.extract_lane 0 (local.get $b)) (local.get $x))
    (v128.store32_lane offset=@LAST@ 1 (i32x4.extract_lane 1 (local.get $b)) (local.get $x))
    (v128.store32_lane offset=@LAST@ 2 (i32x4.extract_lane 2 (local.get $b)) (local.get $x))
    (v128.store32_lane offset=@LAST@ 3 (i32x4.extract_lane 3 (local.get $b)) (local.get $x))
    (br_if $next (i32.lt_u (local.tee $k (i32.add (local.get $k) (i32.const 16)))
      (local.get $end))))
  (loop $next
    (local.set $x (i32x4.shr_u (v128.load offset=@IN@ (local.get $l)) (local.get $shift)))
    (local.set $b (i32x4.shl (v128.and (local.get $x) (local.get $s)) (i32.const 2)))
    (local.set $differ (v128.or (local.get $differ) (v128.xor (local.get $x)
      (v128.load32_lane offset=@LAST@ 3 (i32x4.extract_lane 3 (local.get $b))
      (v128.load32_lane offset=@LAST@ 2 (i32x4.extract_lane 2 (local.get $b))
      (v128.load32_lane offset=@LAST@ 1 (i32x4.extract_lane 1 (local.get $b))
      (v128.load32_zero offset=@LAST@ (i32x4.extract_lane 0 (local.get $b)))))))))
    (br_if $next (i32.lt_u (local.tee $l (i32.add (local.get $l) (i32.const 16)))
      (local.get $end))))
  (i32.eqz (v128.any_true (local.get $differ))))

;; The wavefronts of lanes from $l to before $end, of so many words each: the most words of a bank.
(func $wavefronts_of (param $on i32) (param $words i32) (param $l i32) (param $end i32) (result i32)
  (local $k i32) (local $word i32) (local $bank i32) (local $n i32) (local $j i32) (local $most i32)
  (v128.store offset=@SCRATCH@ (i32.const 0) (v128.const i64x2 0 0))
  (v128.store offset=@SCRATCH@ (i32.const 16) (v128.const i64x2 0 0))
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
        (br_if $each (i32.lt_u (local.tee $k (i32.add (local.get $k) (i32.const 1)))
          (local.get $words))))))
    (br_if $lane (i32.lt_u (local.tee $l (i32.add (local.get $l) (i32.const 1)))
      (local.get $end))))
  (local.get $most))

;; Whether all lanes run, and name all lanes of the warp in their first operand.
(func $are_all (param $on i32) (result i32)
  (i32.and (i32.eq (local.get $on) (i32.const -1))
    (i32.and (i32.eq (i32.load (i32.const @IN@)) (i32.const -1)) (call $rising (i32.const 0)))))

;; Shuffle 32-bit values: `first` is where the operands value, lane and limits lie, 256 bytes
;; apart, `mode` 0 idx, 1 up, 2 down, 3 bfly. Returns the lanes with a source inside their segment.
(func $shuffle (param $on i32) (param $mode i32) (param $first i32) (param $out i32) (result i32)
  (local $l i32) (local $at i32) (local $inside i32) (local $own v128) (local $lane v128)
  (local $last v128) (local $segment v128) (local $source v128) (local $in v128)
  (local.set $own (v128.const i32x4 0 1 2 3))
  (local.set $at (local.get $first))
  (loop $next
    (local.set $lane (v128.and (v128.load offset=256 (local.get $at))
      (v128.const i32x4 31 31 31 31)))
    (local.set $last (v128.load offset=512 (local.get $at)))
    (local.set $segment (v128.and (i32x4.shr_u (local.get $last) (i32.const 8))
      (v128.const i32x4 31 31 31 31)))
    (local.set $last (v128.bitselect (local.get $own)
      (v128.and (local.get $last) (v128.const i32x4 31 31 31 31)) (local.get $segment)))
    (if (i32.eqz (local.get $mode)) (then (local.set $source
      (v128.bitselect (local.get $own) (local.get $lane) (local.get $segment)))))
    (if (i32.eq (local.get $mode) (i32.const 1))
      (then (local.set $source (i32x4.sub (local.get $own) (local.get $lane)))))
    (if (i32.eq (local.get $mode) (i32.const 2))
      (then (local.set $source (i32x4.add (local.get $own) (local.get $lane)))))
    (if (i32.eq (local.get $mode) (i32.const 3))
      (then (local.set $source (v128.xor (local.get $own) (local.get $lane)))))
    (local.set $in (select
      (i32x4.ge_s (local.get $source) (local.get $last))
      (i32x4.le_s (local.get $source) (local.get $last))
      (i32.eq (local.get $mode) (i32.const 1))))
    (local.set $inside (i32.or (local.get $inside)
      (i32.shl (i32x4.bitmask (local.get $in)) (local.get $l))))
    (v128.store offset=@SCRATCH@ (i32.shl (local.get $l) (i32.const 2))
      (v128.bitselect (local.get $source) (local.get $own) (local.get $in)))
    (local.set $own (i32x4.add (local.get $own) (v128.const i32x4 4 4 4 4)))
    (local.set $at (i32.add (local.get $at) (i32.const 16)))
    (br_if $next (i32.lt_u (local.tee $l (i32.add (local.get $l) (i32.const 4)))
      (i32.const 32))))
  ;; A lane reads 0 of one that does not run; lanes that do not run get a value that nobody reads.
  (local.set $l (i32.const 0))
  (loop $next
    (local.set $at (i32.load offset=@SCRATCH@ (local.get $l)))
    (i32.store (i32.add (local.get $out) (local.get $l)) (i32.and
      (i32.load (i32.add (local.get $first) (i32.shl (local.get $at) (i32.const 2))))
      (i32.sub (i32.const 0)
        (i32.and (i32.shr_u (local.get $on) (local.get $at)) (i32.const 1)))))
    (br_if $next (i32.lt_u (local.tee $l (i32.add (local.get $l) (i32.const 4)))
      (i32.const 128))))
  (i32.and (local.get $inside) (local.get $on)))

;; Give each lane the lanes with its value, of so many words; returns -1 if all have one value, else 0.
(func $match (param $on i32) (param $first i32) (param $words i32) (param $out i32) (result i32)
  (local $rest i32) (local $lane i32) (local $same i32) (local $bits i32) (local $at i32)
  (local $w i32) (local $l i32) (local $value v128)
  (local.set $rest (local.get $on))
  (block $done (loop $group
    (br_if $done (i32.eqz (local.get $rest)))
    (local.set $lane (i32.shl (i32.ctz (local.get $rest)) (i32.const 2)))
    (local.set $same (local.get $on))
    (local.set $w (i32.const 0))
    (loop $word
      (local.set $at (i32.add (local.get $first) (i32.shl (local.get $w) (i32.const 8))))
      (local.set $value (v128.load32_splat (i32.add (local.get $at) (local.get $lane))))
      (local.set $bits (i32.const 0))
      (local.set $l (i32.const 0))
      (loop $next
        (local.set $bits (i32.or (local.get $bits) (i32.shl
          (i32x4.bitmask (i32x4.eq (local.get $value) (v128.load (local.get $at))))
          (local.get $l))))
        (local.set $at (i32.add (local.get $at) (i32.const 16)))
        (br_if $next (i32.lt_u (local.tee $l (i32.add (local.get $l) (i32.const 4)))
          (i32.const 32))))
      (local.set $same (i32.and (local.get $same) (local.get $bits)))
      (br_if $word (i32.lt_u (local.tee $w (i32.add (local.get $w) (i32.const 1)))
        (local.get $words))))
    (local.set $rest (i32.and (local.get $rest) (i32.xor (local.get $same) (i32.const -1))))
    (local.set $bits (local.get $same))
    (loop $next
      (i32.store (i32.add (local.get $out) (i32.shl (i32.ctz (local.get $bits)) (i32.const 2)))
        (local.get $same))
      (br_if $next (local.tee $bits
        (i32.and (local.get $bits) (i32.sub (local.get $bits) (i32.const 1))))))
    (br $group)))
  (i32.sub (i32.const 0) (i32.eq (local.get $same) (local.get $on))))

;; Set all lanes of a result.
(func $splat (param $out i32) (param $value i32) (local $end i32)
  (local.set $end (i32.add (local.get $out) (i32.const 128)))
  (loop $next
    (v128.store (local.get $out) (i32x4.splat (local.get $value)))
    (local.set $out (i32.add (local.get $out) (i32.const 16)))
    (br_if $next (i32.lt_u (local.get $out) (local.get $end)))))

;; Keep the distances of global addresses from the first lane's, unless they are as the last time:
;; 256 bytes of them, and behind these `Distances` (`warps/accesses.py`).
(func $look_wide (param $slot i32) (local $k i32) (local $at i32) (local $x v128) (local $y v128)
  (local $first v128) (local $differ v128) (local $least v128) (local $most v128)
  (local $bits v128) (local $four v128) (local $by v128)
  (local.set $first (v128.load64_splat (i32.const @IN@)))
  (local.set $at (local.get $slot))
  (loop $next
    (local.set $differ (v128.or (local.get $differ) (v128.xor (v128.load (local.get $at))
      (i64x2.sub (v128.load offset=@IN@ (local.get $k)) (local.get $first)))))
    (local.set $differ (v128.or (local.get $differ) (v128.xor (v128.load offset=16 (local.get $at))
      (i64x2.sub (v128.load offset=@IN16@ (local.get $k)) (local.get $first)))))
    (local.set $at (i32.add (local.get $at) (i32.const 32)))
    (br_if $next (i32.lt_u (local.tee $k (i32.add (local.get $k) (i32.const 32)))
      (i32.const 256))))
  (if (v128.any_true (local.get $differ)) (then
    (local.set $k (i32.const 0))
    (local.set $at (local.get $slot))
    (local.set $by (v128.const i64x2 0 4))
    (loop $next
      (local.set $x (i64x2.sub (v128.load offset=@IN@ (local.get $k)) (local.get $first)))
      (v128.store (local.get $at) (local.get $x))
      (local.set $bits (v128.or (local.get $bits) (local.get $x)))
      (local.set $four (v128.or (local.get $four) (v128.xor (local.get $x) (local.get $by))))
      (local.set $by (i64x2.add (local.get $by) (v128.const i64x2 8 8)))
      (local.set $least (v128.bitselect (local.get $x) (local.get $least)
        (i64x2.lt_s (local.get $x) (local.get $least))))
      (local.set $most (v128.bitselect (local.get $x) (local.get $most)
        (i64x2.gt_s (local.get $x) (local.get $most))))
      (local.set $at (i32.add (local.get $at) (i32.const 16)))
      (br_if $next (i32.lt_u (local.tee $k (i32.add (local.get $k) (i32.const 16)))
        (i32.const 256))))
    (i32.store offset=264 (local.get $slot) (i32.const -1))
    (i32.store offset=304 (local.get $slot) (i32.const 0))
    (i32.store offset=268 (local.get $slot) (select (i32.const 1)
      (i32.shl (v128.any_true (local.get $bits)) (i32.const 1))
      (i32.eqz (v128.any_true (local.get $four)))))
    (local.set $y (i8x16.shuffle 8 9 10 11 12 13 14 15 0 1 2 3 4 5 6 7
      (local.get $least) (local.get $least)))
    (i64.store offset=272 (local.get $slot) (i64x2.extract_lane 0 (v128.bitselect (local.get $y)
      (local.get $least) (i64x2.lt_s (local.get $y) (local.get $least)))))
    (local.set $y (i8x16.shuffle 8 9 10 11 12 13 14 15 0 1 2 3 4 5 6 7
      (local.get $most) (local.get $most)))
    (i64.store offset=280 (local.get $slot) (i64x2.extract_lane 0 (v128.bitselect (local.get $y)
      (local.get $most) (i64x2.gt_s (local.get $y) (local.get $most)))))
    (i64.store offset=288 (local.get $slot) (i64.or (i64x2.extract_lane 0 (local.get $bits))
      (i64x2.extract_lane 1 (local.get $bits)))))))

;; The lanes with the first access to a sector.
(func $firsts (param $on i32) (param $slot i32) (result i32) (local $k i32) (local $found i32)
  (local $s v128) (local $p v128) (local $falls v128) (local $low i32)
  (local.set $low (i32.and (i32.load (i32.const @IN@)) (i32.const 31)))
  (if (i32.and (i32.eq (local.get $low) (i32.load offset=264 (local.get $slot)))
      (i32.eq (local.get $on) (i32.load offset=256 (local.get $slot))))
    (then (return (i32.load offset=260 (local.get $slot)))))
  (local.set $p (i64x2.shr_u (v128.load64_splat (i32.const @IN@)) (i32.const 5)))
  (local.set $found (i32.const 1))
  (loop $next
    (local.set $s (i64x2.shr_u
      (v128.load offset=@IN@ (i32.shl (local.get $k) (i32.const 3))) (i32.const 5)))
    (local.set $p (i8x16.shuffle 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23
      (local.get $p) (local.get $s)))
    (local.set $found (i32.or (local.get $found) (i32.shl
      (i64x2.bitmask (i64x2.ne (local.get $p) (local.get $s))) (local.get $k))))
    (local.set $falls (v128.or (local.get $falls) (i64x2.gt_s (local.get $p) (local.get $s))))
    (local.set $p (local.get $s))
    (br_if $next (i32.lt_u (local.tee $k (i32.add (local.get $k) (i32.const 2)))
      (i32.const 32))))
  (if (v128.any_true (local.get $falls)) (then
    (local.set $found (i32.const 0))
    (local.set $k (local.get $on))
    (call $new_set)
    (loop $next
      (if (i32.eq (i32.const 1) (call $counted (i64.shr_u (i64.load offset=@IN@
          (i32.shl (i32.ctz (local.get $k)) (i32.const 3))) (i64.const 5))))
        (then (local.set $found (i32.or (local.get $found)
          (i32.and (local.get $k) (i32.sub (i32.const 0) (local.get $k)))))))
      (br_if $next (local.tee $k
        (i32.and (local.get $k) (i32.sub (local.get $k) (i32.const 1))))))))
  (i32.store offset=256 (local.get $slot) (local.get $on))
  (i32.store offset=260 (local.get $slot) (local.get $found))
  (i32.store offset=264 (local.get $slot) (local.get $low))
  (local.get $found))

;; The same for memory of a block or thread: 128 bytes of distances, and `OwnDistances`.
(func $look (param $slot i32) (local $k i32) (local $at i32) (local $x v128) (local $first v128)
  (local $differ v128) (local $least v128) (local $most v128) (local $bits v128) (local $four v128)
  (local $by v128)
  (local.set $first (v128.load32_splat (i32.const @IN@)))
  (local.set $at (local.get $slot))
  (loop $next
    (local.set $differ (v128.or (local.get $differ) (v128.xor (v128.load (local.get $at))
      (i32x4.sub (v128.load offset=@IN@ (local.get $k)) (local.get $first)))))
    (local.set $differ (v128.or (local.get $differ) (v128.xor (v128.load offset=16 (local.get $at))
      (i32x4.sub (v128.load offset=@IN16@ (local.get $k)) (local.get $first)))))
    (local.set $at (i32.add (local.get $at) (i32.const 32)))
    (br_if $next (i32.lt_u (local.tee $k (i32.add (local.get $k) (i32.const 32)))
      (i32.const 128))))
  (if (v128.any_true (local.get $differ)) (then
    (local.set $k (i32.const 0))
    (local.set $at (local.get $slot))
    (local.set $by (v128.const i32x4 0 4 8 12))
    (loop $next
      (local.set $x (i32x4.sub (v128.load offset=@IN@ (local.get $k)) (local.get $first)))
      (v128.store (local.get $at) (local.get $x))
      (local.set $bits (v128.or (local.get $bits) (local.get $x)))
      (local.set $four (v128.or (local.get $four) (v128.xor (local.get $x) (local.get $by))))
      (local.set $by (i32x4.add (local.get $by) (v128.const i32x4 16 16 16 16)))
      (local.set $least (i32x4.min_s (local.get $x) (local.get $least)))
      (local.set $most (i32x4.max_s (local.get $x) (local.get $most)))
      (local.set $at (i32.add (local.get $at) (i32.const 16)))
      (br_if $next (i32.lt_u (local.tee $k (i32.add (local.get $k) (i32.const 16)))
        (i32.const 128))))
    (i64.store offset=152 (local.get $slot) (i64.const -1))
    (i32.store offset=132 (local.get $slot) (select (i32.const 1)
      (i32.shl (v128.any_true (local.get $bits)) (i32.const 1))
      (i32.eqz (v128.any_true (local.get $four)))))
    (local.set $least (i32x4.min_s (local.get $least)
      (i8x16.shuffle 8 9 10 11 12 13 14 15 0 1 2 3 4 5 6 7 (local.get $least) (local.get $least))))
    (local.set $least (i32x4.min_s (local.get $least)
      (i8x16.shuffle 4 5 6 7 0 1 2 3 4 5 6 7 0 1 2 3 (local.get $least) (local.get $least))))
    (local.set $most (i32x4.max_s (local.get $most)
      (i8x16.shuffle 8 9 10 11 12 13 14 15 0 1 2 3 4 5 6 7 (local.get $most) (local.get $most))))
    (local.set $most (i32x4.max_s (local.get $most)
      (i8x16.shuffle 4 5 6 7 0 1 2 3 4 5 6 7 0 1 2 3 (local.get $most) (local.get $most))))
    (i32.store offset=136 (local.get $slot) (i32x4.extract_lane 0 (local.get $least)))
    (i32.store offset=140 (local.get $slot) (i32x4.extract_lane 0 (local.get $most)))
    (local.set $bits (v128.or (local.get $bits)
      (i8x16.shuffle 8 9 10 11 12 13 14 15 0 1 2 3 4 5 6 7 (local.get $bits) (local.get $bits))))
    (i32.store offset=144 (local.get $slot) (i32.or (i32x4.extract_lane 0 (local.get $bits))
      (i32x4.extract_lane 1 (local.get $bits)))))))

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
