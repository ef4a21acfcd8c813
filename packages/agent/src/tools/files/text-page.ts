import type { FileHandle } from 'node:fs/promises'
import type { FileKind } from './file-kind.ts'

export interface PageOptions {
  kind: Extract<FileKind, { type: 'text' }>
  /** Counted from 1. */
  firstLine: number
  maxLines: number
  maxBytes: number
  /** Longer lines are truncated, in UTF-16 code units. */
  maxLineLength: number
  signal: AbortSignal
}

export interface TextPage {
  lines: string[]
  /** Lines read, including those before this page. */
  linesRead: number
  hasMore: boolean
}

/** Reads some lines of a file of any size, holding at most one page. */
export async function readTextPage(handle: FileHandle, options: PageOptions): Promise<TextPage> {
  const { kind, firstLine, maxLines, maxBytes, maxLineLength, signal } = options
  const page: TextPage = { lines: [], linesRead: 0, hasMore: false }
  let bytes = 0
  const line = new CutLine(maxLineLength)
  for await (const text of textOf(handle, kind, signal)) {
    let start = 0
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', start)) {
      line.add(text.slice(start, end))
      start = end + 1
      if (!take()) return page
    }
    line.add(text.slice(start))
  }
  if (line.hasBegun) take()
  return page

  /** Returns false if the page is full. */
  function take(): boolean {
    const { shown } = line
    line.reset()
    if (page.linesRead + 1 >= firstLine) {
      bytes += Buffer.byteLength(shown) + 1
      page.hasMore = page.lines.length === maxLines || (bytes > maxBytes && page.lines.length > 0)
      if (page.hasMore) return false
      page.lines.push(shown)
    }
    page.linesRead += 1
    return true
  }
}

/** An incomplete line, of which only the start is kept. */
class CutLine {
  readonly #maxLength: number
  #start = ''
  #length = 0
  #end = ''

  constructor(maxLength: number) {
    this.#maxLength = maxLength
  }

  get hasBegun(): boolean {
    return this.#length > 0
  }

  get shown(): string {
    const length = this.#end === '\r' ? this.#length - 1 : this.#length
    if (length <= this.#maxLength) return this.#start.slice(0, length)
    return `${this.#start.slice(0, this.#maxLength)} [… cut: this line has ${length} characters]`
  }

  add(text: string): void {
    if (text === '') return
    if (this.#start.length <= this.#maxLength) this.#start += text.slice(0, this.#maxLength + 1 - this.#start.length)
    this.#length += text.length
    this.#end = text.at(-1) ?? ''
  }

  reset(): void {
    this.#start = ''
    this.#length = 0
    this.#end = ''
  }
}

async function* textOf(handle: FileHandle, kind: PageOptions['kind'], signal: AbortSignal): AsyncGenerator<string> {
  const decoder = new TextDecoder(kind.encoding, { ignoreBOM: true })
  const buffer = Buffer.allocUnsafe(64 * 1024)
  let position = kind.bomLength
  while (true) {
    signal.throwIfAborted()
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, position)
    if (bytesRead === 0) break
    position += bytesRead
    yield decoder.decode(buffer.subarray(0, bytesRead), { stream: true })
  }
  yield decoder.decode()
}
