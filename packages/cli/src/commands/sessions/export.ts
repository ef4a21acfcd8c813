import { createReadStream } from 'node:fs'
import { rename, stat, open, rm, type FileHandle } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join, resolve, extname } from 'node:path'
import { flag, textOption, type Invocation } from '../../command-line/command.ts'
import { exitCodes, type ExitCode } from '../../command-line/exit-code.ts'
import { askYesNo, isInteractive, write, printJson, type Io } from '../../command-line/io.ts'
import { redactionPreview, RedactionTally } from '../../export/redaction-tally.ts'
import { Failure, usageFailure } from '../../command-line/failure.ts'
import { harmlessLine } from '../../text/harmless.ts'
import { findSession } from '../../host/find-session.ts'
import { placesOf } from '../../host/places.ts'
import { Progress } from '../../sessions/progress.ts'
import { withStore } from '../../sessions/with-store.ts'
import type { Session, SessionStore } from '@tapetree/session'
import { exportedSession } from '../../export/exported-session.ts'
import { codeScopes, htmlExport, type CodePainter } from '../../export/html-export.ts'
import { escapeHtml } from '../../export/markdown-html.ts'
import { Highlighter } from '../../tui/markdown/highlight.ts'
import { sliceLine } from '../../tui/markdown/wrap-line.ts'
import { CodeColors } from '../../tui/views/diff-view.ts'
import { markdownExport } from '../../export/markdown-export.ts'
import { redactedPack } from '../../export/redacted-pack.ts'
import { redactorOf } from './redactor.ts'
import { randomBytes } from 'node:crypto'

/** Writes the whole export to a temporary file first: the user confirms exactly what the final file contains. */
export async function runSessionsExport(invocation: Invocation, io: Io): Promise<ExitCode> {
  const [reference = 'last'] = invocation.positionals
  const isJson = flag(invocation, 'json')
  return withStore(io, async (store) => {
    const { id } = await findSession(store, reference, { cwd: io.cwd })
    const target = targetOf(invocation, io, id)
    const isForced = flag(invocation, 'yes')
    if (target.file !== undefined && !isForced) await refuseExisting(target.file)
    const tally = new RedactionTally(await redactorOf(io))
    await using made = await PrivateFile.create(target.file ?? join(tmpdir(), `tapetree-${id}`))
    await using session = await store.open(id, { readOnly: true })
    {
      using _progress = new Progress(io.stderr, 'Writing the session')
      await made.writeAll(
        exportOf(target.format, { store, session, tally, snapshotsFolder: placesOf(io).workspaces }),
        io.signal,
      )
    }
    await write(io.stderr, redactionPreview(tally))
    const where = target.file === undefined ? 'stdout' : harmlessLine(target.file)
    if (isInteractive(io) && !isForced && !(await askYesNo(io, `Write it to ${where}?`))) {
      await write(io.stderr, 'Nothing was written.\n')
      return exitCodes.ok
    }
    if (target.file === undefined) await copyTo(io, made.path)
    else await rename(made.path, target.file)
    if (isJson) await printJson(io, resultOf({ id, target, bytes: made.size, tally }))
    else if (target.file !== undefined) await write(io.stderr, `Wrote ${where} (${made.size} bytes).\n`)
    return exitCodes.ok
  })
}

interface Target {
  format: ExportFormat
  /** Stdout if absent. */
  file?: string
}

function targetOf(invocation: Invocation, io: Io, id: string): Target {
  const output = textOption(invocation, 'output')
  const chosen = textOption(invocation, 'format') as ExportFormat | undefined
  const format = chosen ?? (output === undefined ? undefined : formatOfFile(output)) ?? 'bundle'
  const isJson = flag(invocation, 'json')
  if (output === '-' && isJson) throw usageFailure('With --json the result goes to stdout, so --output must be a file.')
  if (output === '-' && io.stdout.isTTY && format === 'bundle') {
    throw usageFailure('A bundle is not readable text. Write it to a file or a pipe.')
  }
  if (output === '-' || (output === undefined && !isJson && !io.stdout.isTTY)) return { format }
  return { format, file: resolve(io.cwd, output ?? `session-${id}${exportEndings[format]}`) }
}

async function refuseExisting(file: string): Promise<void> {
  const isThere = await stat(file).then(
    () => true,
    () => false,
  )
  if (!isThere) return
  throw new Failure(exitCodes.usage, `${harmlessLine(basename(file))} already exists.`, {
    type: 'file-exists',
    why: 'Use --yes to overwrite it.',
    next: ['tapetree sessions export <session> --output <another file>'],
  })
}

async function copyTo({ stdout }: Io, path: string): Promise<void> {
  for await (const chunk of createReadStream(path)) await write(stdout, chunk as Buffer)
}

function resultOf({
  id,
  target,
  bytes,
  tally,
}: {
  id: string
  target: Target
  bytes: number
  tally: RedactionTally
}): unknown {
  return {
    id,
    ...target,
    bytes,
    redacted: Object.fromEntries(tally.found),
    redacted_when_recorded: Object.fromEntries(tally.recorded),
    images: tally.images,
  }
}

type ExportFormat = 'bundle' | 'markdown' | 'html'

const exportEndings: Record<ExportFormat, string> = { bundle: '.tapetree', markdown: '.md', html: '.html' }

/** The format by file extension. */
function formatOfFile(file: string): ExportFormat | undefined {
  const ending = extname(file).toLowerCase()
  if (ending === '.htm') return 'html'
  return (Object.keys(exportEndings) as ExportFormat[]).find((format) => exportEndings[format] === ending)
}

interface ExportParts {
  store: SessionStore
  session: Session
  tally: RedactionTally
  snapshotsFolder: string
}

/** The exported session in chunks, without secrets. */
async function* exportOf(
  format: ExportFormat,
  { store, session, tally, snapshotsFolder }: ExportParts,
): AsyncGenerator<string | Uint8Array> {
  switch (format) {
    case 'bundle':
      yield* redactedPack(store.pack(session.id), tally)
      return
    case 'markdown':
      yield* markdownExport(await exportedSession(session, { tally, scope: 'path' }))
      return
    case 'html':
      yield* htmlExport(await exportedSession(session, { tally, scope: 'tree', snapshotsFolder }), htmlPainter())
      return
    default:
      format satisfies never
  }
}

/** A temporary file beside another one, readable by its owner only. Removed at the end unless it was moved. */
class PrivateFile implements AsyncDisposable {
  readonly path: string
  readonly #file: FileHandle
  #size = 0

  private constructor(path: string, file: FileHandle) {
    this.path = path
    this.#file = file
  }

  static async create(beside: string): Promise<PrivateFile> {
    const path = `${beside}.${randomBytes(4).toString('hex')}.part`
    return new PrivateFile(path, await open(path, 'wx', 0o600))
  }

  get size(): number {
    return this.#size
  }

  /** Writes small chunks together. */
  async writeAll(pieces: AsyncIterable<string | Uint8Array>, signal: AbortSignal): Promise<void> {
    let waiting: Uint8Array[] = []
    let waitingBytes = 0
    const flush = async (): Promise<void> => {
      await this.#file.writev(waiting)
      this.#size += waitingBytes
      waiting = []
      waitingBytes = 0
    }
    for await (const piece of pieces) {
      signal.throwIfAborted()
      const bytes = Buffer.from(piece)
      waiting.push(bytes)
      waitingBytes += bytes.length
      if (waitingBytes >= flushBytes) await flush()
    }
    if (waiting.length > 0) await flush()
    await this.#file.sync()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file.close()
    await rm(this.path, { force: true })
  }
}

const flushBytes = 256 * 1024

/** The colors of diffs on the screen, as spans with a class. */
function htmlPainter(): CodePainter {
  const inSpan = (scope: string) => (text: string) => `<span class="s-${scope}">${escapeHtml(text)}</span>`
  const syntax = Object.fromEntries(codeScopes.map((scope) => [scope, inSpan(scope)]))
  const colors = new CodeColors({ theme: { syntax }, highlighter: new Highlighter(() => undefined) })
  return {
    load: async (files) => {
      colors.forget()
      await Promise.all(files.map((file) => colors.load(file)))
    },
    html: (place, line, { start, end }) =>
      sliceLine(colors.of(place, line), start, end)
        .map(({ text, style = escapeHtml }) => style(text))
        .join(''),
  }
}
