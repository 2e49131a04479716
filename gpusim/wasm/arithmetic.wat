;; Arithmetic as in Python, where WebAssembly has no instruction for it.

(func $floor_divided (param $a i64) (param $b i64) (result i64)
  (i64.sub (i64.div_s (local.get $a) (local.get $b))
    (i64.extend_i32_u (i32.and
      (i64.ne (i64.rem_s (local.get $a) (local.get $b)) (i64.const 0))
      (i64.lt_s (i64.xor (local.get $a) (local.get $b)) (i64.const 0))))))

(func $modulo (param $a i64) (param $b i64) (result i64) (local $rest i64)
  (local.set $rest (i64.rem_s (local.get $a) (local.get $b)))
  (select (i64.add (local.get $rest) (local.get $b)) (local.get $rest)
    (i32.and (i64.ne (local.get $rest) (i64.const 0))
      (i64.lt_s (i64.xor (local.get $rest) (local.get $b)) (i64.const 0)))))

(func $divided (param $a f64) (param $b f64) (result f64)
  (if (f64.eq (local.get $b) (f64.const 0)) (then (unreachable)))
  (f64.div (local.get $a) (local.get $b)))

;; math.frexp and math.ldexp, of what is neither zero, infinite nor subnormal.
(func $frexp (param $x f64) (result f64 i64) (local $bits i64) (local $exponent i64)
  (local.set $bits (i64.reinterpret_f64 (local.get $x)))
  (local.set $exponent
    (i64.and (i64.shr_u (local.get $bits) (i64.const 52)) (i64.const 0x7ff)))
  (if (i64.gt_u (i64.sub (local.get $exponent) (i64.const 1)) (i64.const 0x7fd))
    (then (unreachable)))
  (f64.reinterpret_i64 (i64.or (i64.const 0x3fe0000000000000)
    (i64.and (local.get $bits) (i64.const 0x800fffffffffffff))))
  (i64.sub (local.get $exponent) (i64.const 1022)))

(func $ldexp (param $x f64) (param $exponent i64) (result f64)
  (if (i64.gt_u (i64.add (local.get $exponent) (i64.const 1022)) (i64.const 2045))
    (then (unreachable)))
  (f64.mul (local.get $x) (f64.reinterpret_i64
    (i64.shl (i64.add (local.get $exponent) (i64.const 1023)) (i64.const 52)))))
