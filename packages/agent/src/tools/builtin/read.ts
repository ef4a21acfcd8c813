import { text } from '@tapetree/session'
import type { FileHandle } from 'node:fs/promises'
import { z } from 'zod'
import { descriptionOf } from './description.ts'
import { fileKindOf, headBytes, type FileKind } from '../files/file-kind.ts'
import { missingProblem } from '../files/missing-path.ts'
import { judgedPath, pathSchema, realPathOf, shownPath } from '../files/paths.ts'
import { openRegularFile } from '../files/regular-file.ts'
import { readTextPage } from '../files/text-page.ts'
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
      `[Lines ${firstLine} to ${page.linesRead} of a file of ${size} bytes. Go on with offset ${page.linesRead + 1}.]`,
    )
  }
  if (page.lines.some((line) => line.includes('\ufffd'))) {
    numbered.push(`[Where \ufffd stands, the file may have bytes that are no ${kind.encoding.toUpperCase()} text.]`)
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
  const blob = await context.putBlob(await file.readFile())
  return {
    content: [
      text(`${name}: ${mediaType}, ${blob.size} bytes`),
      { type: 'image', image: { source: { type: 'blob', mediaType, ...blob } } },
    ],
  }
}
