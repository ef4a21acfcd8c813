import { byteOrderMarks, fileKindOf, type Encoding } from './file-kind.ts'

/** A text file in memory, with what is needed to write it back unchanged. */
export interface TextFile {
  /** Without the byte order mark. */
  text: string
  encoding: Encoding
  hasBom: boolean
}

/** Undefined if the bytes are not text, or if encoding the text would not give the same bytes. */
export function decodeTextFile(bytes: Uint8Array): TextFile | undefined {
  const kind = fileKindOf(bytes)
  if (kind.type !== 'text') return undefined
  try {
    const decoder = new TextDecoder(kind.encoding, { fatal: true, ignoreBOM: true })
    const text = decoder.decode(bytes.subarray(kind.bomLength))
    return { text, encoding: kind.encoding, hasBom: kind.bomLength > 0 }
  } catch {
    // The bytes are not valid in this encoding.
    return undefined
  }
}

export function encodeTextFile({ text, encoding, hasBom }: TextFile): Buffer {
  const content = Buffer.from(text, encoding === 'utf-8' ? 'utf8' : 'utf16le')
  if (encoding === 'utf-16be') content.swap16()
  const mark = hasBom ? byteOrderMarks.find(([, marked]) => marked === encoding)?.[0] : undefined
  return Buffer.concat([Buffer.from(mark ?? []), content])
}
