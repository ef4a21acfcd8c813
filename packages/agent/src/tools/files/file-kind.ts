export type Encoding = 'utf-8' | 'utf-16le' | 'utf-16be'

/** The kind of a file, from its first bytes. */
export type FileKind =
  | { type: 'text'; encoding: Encoding; bomLength: number }
  | { type: 'image'; mediaType: string }
  /** The name fits into a sentence: `a PDF document`. */
  | { type: 'binary'; name: string }

/** How many bytes are needed to tell. */
export const headBytes = 8192

export function fileKindOf(head: Uint8Array): FileKind {
  const bytes = Buffer.from(head.buffer, head.byteOffset, Math.min(head.byteLength, headBytes))
  const image = imageTypeOf(bytes)
  if (image !== undefined) return { type: 'image', mediaType: image }
  const binary = signatures.find(([signature]) => begins(bytes, signature))
  if (binary) return { type: 'binary', name: binary[1] }
  const mark = byteOrderMarks.find(([signature]) => begins(bytes, signature))
  if (mark) return { type: 'text', encoding: mark[1], bomLength: mark[0].length }
  if (bytes.includes(0)) return { type: 'binary', name: 'a binary file' }
  return { type: 'text', encoding: 'utf-8', bomLength: 0 }
}

export const byteOrderMarks: [number[], Encoding][] = [
  [[0xef, 0xbb, 0xbf], 'utf-8'],
  [[0xff, 0xfe], 'utf-16le'],
  [[0xfe, 0xff], 'utf-16be'],
]

/** The image types that models accept. */
function imageTypeOf(bytes: Buffer): string | undefined {
  if (begins(bytes, '\x89PNG\r\n\x1a\n')) return 'image/png'
  if (begins(bytes, [0xff, 0xd8, 0xff])) return 'image/jpeg'
  if (begins(bytes, 'GIF87a') || begins(bytes, 'GIF89a')) return 'image/gif'
  if (begins(bytes, 'RIFF') && bytes.toString('latin1', 8, 12) === 'WEBP') return 'image/webp'
  return undefined
}

const signatures: [string | number[], string][] = [
  ['%PDF-', 'a PDF document'],
  ['PK\x03\x04', 'a ZIP archive or a document packed like one'],
  ['PK\x05\x06', 'an empty ZIP archive'],
  [[0x1f, 0x8b], 'a gzip archive'],
  ['BZh', 'a bzip2 archive'],
  [[0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00], 'an xz archive'],
  [[0x28, 0xb5, 0x2f, 0xfd], 'a zstd archive'],
  [[0x37, 0x7a, 0xbc, 0xaf, 0x27, 0x1c], 'a 7z archive'],
  ['\x7fELF', 'an ELF program or library'],
  [[0xcf, 0xfa, 0xed, 0xfe], 'a Mach-O program or library'],
  ['\0asm', 'a WebAssembly module'],
  ['SQLite format 3\0', 'an SQLite database'],
  ['OggS', 'an Ogg file'],
  ['fLaC', 'a FLAC file'],
  ['wOFF', 'a font'],
  ['wOF2', 'a font'],
]

function begins(bytes: Buffer, signature: string | number[]): boolean {
  const expected = typeof signature === 'string' ? Buffer.from(signature, 'latin1') : Buffer.from(signature)
  return bytes.subarray(0, expected.length).equals(expected)
}
