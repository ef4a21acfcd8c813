import { byteOrderMarks, fileKindOf, type Encoding } from './file-kind.ts'
import { createTwoFilesPatch, FILE_HEADERS_ONLY } from 'diff'

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

interface Versions {
  /** The name to show. */
  name: string
  before: Uint8Array | undefined
  after: Uint8Array
}

/** With more changed lines a diff is slow and not useful. */
const maxChangedLines = 1000
const maxBytes = 1024 * 1024

/** The change as a unified diff, or a sentence if there is none. */
export function unifiedDiff({ name, before, after }: Versions): string {
  if (!before || before.length + after.length > maxBytes) return '(The file is too large for a diff.)'
  const [old, current] = [decodeTextFile(before), decodeTextFile(after)]
  if (!old || !current) return '(No diff: the file is not text.)'
  if (old.text === current.text) return '(The text is the same as before.)'
  const patch = createTwoFilesPatch(name, name, old.text, current.text, undefined, undefined, {
    context: 3,
    maxEditLength: maxChangedLines,
    headerOptions: FILE_HEADERS_ONLY,
  })
  return patch?.trimEnd() ?? '(Too much has changed for a diff.)'
}
