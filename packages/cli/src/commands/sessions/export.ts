import { createReadStream } from 'node:fs'
import { rename, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { flag, textOption, type Invocation } from '../../command-line/command.ts'
import { exitCodes, type ExitCode } from '../../command-line/exit-code.ts'
import { askYesNo } from '../../command-line/ask.ts'
import { exportEndings, exportOf, formatOfFile, type ExportFormat } from '../../export/export-format.ts'
import { PrivateFile } from '../../export/private-file.ts'
import { redactionPreview, RedactionTally } from '../../export/redaction-tally.ts'
import { redactorOf } from '../../export/redactor-of.ts'
import { Failure, usageFailure } from '../../command-line/failure.ts'
import { harmlessLine } from '../../text/harmless.ts'
import { findSession } from '../../host/find-session.ts'
import { isInteractive, write, type Io } from '../../command-line/io.ts'
import { printJson } from '../../command-line/print-json.ts'
import { Progress } from '../../sessions/progress.ts'
import { withStore } from '../../sessions/with-store.ts'

/** Everything is made first, beside its place: what is shown and asked about is what is in the file. */
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
      await made.writeAll(exportOf(target.format, { store, session, tally }), io.signal)
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
  /** Absent: stdout. */
  file?: string
}

function targetOf(invocation: Invocation, io: Io, id: string): Target {
  const output = textOption(invocation, 'output')
  const chosen = textOption(invocation, 'format') as ExportFormat | undefined
  const format = chosen ?? (output === undefined ? undefined : formatOfFile(output)) ?? 'bundle'
  const isJson = flag(invocation, 'json')
  if (output === '-' && isJson) throw usageFailure('With --json the result is on stdout, so --output must be a file.')
  if (output === '-' && io.stdout.isTTY && format === 'bundle') {
    throw usageFailure('A bundle is not for reading: write it to a file, or into a pipe.')
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
  throw new Failure(exitCodes.usage, `${harmlessLine(basename(file))} is there already.`, {
    type: 'file-exists',
    why: 'With --yes it is replaced.',
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
