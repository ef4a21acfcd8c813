/** CRC-32 (IEEE) in plain JavaScript, for browsers. Under Node `#crc32` resolves to `crc32.node.ts`. */
export function crc32(data: string | Uint8Array): number {
  const bytes = typeof data === 'string' ? encoder.encode(data) : data
  let crc = 0xffffffff
  for (const byte of bytes) crc = (crc >>> 8) ^ (table[(crc ^ byte) & 0xff] ?? 0)
  return (crc ^ 0xffffffff) >>> 0
}

const encoder = new TextEncoder()

const table = Uint32Array.from({ length: 256 }, (_, index) => {
  let value = index
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1
  return value
})
