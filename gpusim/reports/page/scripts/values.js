// Elements of shared memory come as the bits of a signed number; a type reads them again.

const BITS = new DataView(new ArrayBuffer(8));
const READ = {
  bool: "getUint8", int8: "getInt8", uint8: "getUint8", int16: "getInt16", uint16: "getUint16",
  int32: "getInt32", uint32: "getUint32", int64: "getBigInt64", uint64: "getBigUint64",
  float32: "getFloat32", float64: "getFloat64",
};

function shown(bits, width, type) {
  if (type === "hex") {
    return "0x" + BigInt.asUintN(8 * width, BigInt(bits)).toString(16).padStart(2 * width, "0");
  }
  BITS.setBigInt64(0, BigInt(bits), true);
  const value = BITS[READ[type]](0, true);
  return String(type.startsWith("float") ? Number(value.toPrecision(6)) : value);
}

function typeOf(format, width, used) {
  if (format === "hex") return format;
  if (format !== "used") return `${format}${8 * width}` in READ ? `${format}${8 * width}` : "hex";
  return used === "bool" || used.endsWith(String(8 * width)) ? used : `int${8 * width}`;
}

function count(bits) {
  let lanes = 0;
  for (let lane = 0; lane < LANES; lane++) lanes += (bits >>> lane) & 1;
  return lanes;
}
