import { text } from '@tapetree/session'
import type { FileHandle } from 'node:fs/promises'
import { z } from 'zod'
import { descriptionOf } from './description.ts'
import { fileKindOf, headBytes, type FileKind } from '../files/file-kind.ts'
import { missingProblem, judgedPath, pathSchema, realPathOf, shownPath } from '../files/paths.ts'
import { openRegularFile } from '../files/confirm-path.ts'
import { defineTool, type ToolContext, type ToolOutput } from '../tool.ts'
import { answerProblems, hasCode, ToolProblem } from '../tool-problem.ts'

const maxLines = 2000
const maxBytes = 48 * 1024
const maxLineLength = 2000
const maxImageBytes = 5 * 1024 * 1024

const schema = z.object({
  path: pathSchema.describe('The file to read.'),
  offset: z.int().min(1).optional().describe('The first line to show, counted from 1.'),
  limit: z.int().min(1).max(maxLines).optional().describe(`How many lines to show; at most ${maxLines}.`),
})

export const readTool = defineTool({
  name: 'read',
  description: descriptionOf('read'),
  schema,
  readOnly: true,
  replay: 'safe',
  access: ({ path }, place) => [{ type: 'read', path: realPathOf(path, place) }],
  run: (input, context, judged) => answerProblems(() => read(judgedPath(judged, 'read'), input, context)),
})

async function read(path: string, input: z.output<typeof schema>, context: ToolContext): Promise<ToolOutput> {
  await using file = await openRegularFile(path).catch(async (error: unknown) => {
    throw hasCode(error, 'ENOENT', 'ENOTDIR') ? await missingProblem(path, context) : error
  })
  const { size } = await file.stat()
  const kind = fileKindOf(await headOf(file))
  const output = await contentOf(file, { ...input, path, size, kind }, context)
  const { runId, callId } = context
  await context.append({ type: 'file_read', fileRead: { path, size, runId, callId } })
  return output
}

interface OpenedFile {
  path: string
  size: number
  kind: FileKind
  offset?: number | undefined
  limit?: number | undefined
}

async function contentOf(file: FileHandle, opened: OpenedFile, context: ToolContext): Promise<ToolOutput> {
  const { path, size, kind } = opened
  switch (kind.type) {
    case 'text':
      return { content: await textOf(file, { ...opened, kind }, context) }
    case 'image':
      return imageOf(file, { ...opened, mediaType: kind.mediaType }, context)
    case 'binary':
      throw new ToolProblem(`${shownPath(path, context)} is ${kind.name} (${size} bytes) and cannot be shown as text.`)
    default:
      return kind satisfies never
  }
}

async function headOf(file: FileHandle): Promise<Uint8Array> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(headBytes), 0, headBytes, 0)
  return buffer.subarray(0, bytesRead)
}

type OpenedText = OpenedFile & { kind: Extract<FileKind, { type: 'text' }> }

async function textOf(file: FileHandle, opened: OpenedText, context: ToolContext): Promise<string> {
  const { path, size, kind, offset: firstLine = 1, limit = maxLines } = opened
  const { signal } = context
  const page = await readTextPage(file, { kind, firstLine, maxLines: limit, maxBytes, maxLineLength, signal })
  if (page.lines.length === 0) {
    if (page.linesRead === 0) return `${shownPath(path, context)} is empty.`
    throw new ToolProblem(
      `${shownPath(path, context)} has only ${page.linesRead} lines, so there is no line ${firstLine}.`,
    )
  }
  const numbered = page.lines.map((line, index) => `${firstLine + index}\t${line}`)
  if (page.hasMore) {
    numbered.push(
      `[Lines ${firstLine} to ${page.linesRead} of a file of ${size} bytes. Continue with offset ${page.linesRead + 1}.]`,
    )
  }
  if (page.lines.some((line) => line.includes('\ufffd'))) {
    numbered.push(`[Each \ufffd may stand for bytes that are not valid ${kind.encoding.toUpperCase()}.]`)
  }
  return numbered.join('\n')
}

async function imageOf(
  file: FileHandle,
  { path, size, mediaType }: OpenedFile & { mediaType: string },
  context: ToolContext,
): Promise<ToolOutput> {
  const name = shownPath(path, context)
  if (size > maxImageBytes) {
    throw new ToolProblem(
      `${name} is an image (${mediaType}) of ${size} bytes; at most ${maxImageBytes} can be shown. Make a smaller copy and read that.`,
    )
  }
  const { model } = context
  if (model?.hasImages === false) {
    return {
      content: `${name} is an image (${mediaType}) of ${size} bytes. It is not shown: ${model.id} does not support images.`,
    }
  }
  const blob = await context.putBlob(await file.readFile())
  return {
    content: [
      text(`${name}: ${mediaType}, ${blob.size} bytes`),
      { type: 'image', image: { source: { type: 'blob', mediaType, ...blob } } },
    ],
  }
}

interface PageOptions {
  kind: Extract<FileKind, { type: 'text' }>
  /** Counted from 1. */
  firstLine: number
  maxLines: number
  maxBytes: number
  /** Longer lines are truncated, in UTF-16 code units. */
  maxLineLength: number
  signal: AbortSignal
}

interface TextPage {
  lines: string[]
  /** Lines read, including those before this page. */
  linesRead: number
  hasMore: boolean
}

/** Reads some lines of a file of any size, holding at most one page. */
async function readTextPage(handle: FileHandle, options: PageOptions): Promise<TextPage> {
  const { kind, firstLine, maxLines, maxBytes, maxLineLength, signal } = options
  const page: TextPage = { lines: [], linesRead: 0, hasMore: false }
  let bytes = 0
  const line = new CutLine(maxLineLength)
  for await (const text of decodedText(handle, kind, signal)) {
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
    return `${this.#start.slice(0, this.#maxLength)} [… truncated: this line has ${length} characters]`
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

async function* decodedText(
  handle: FileHandle,
  kind: PageOptions['kind'],
  signal: AbortSignal,
): AsyncGenerator<string> {
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
