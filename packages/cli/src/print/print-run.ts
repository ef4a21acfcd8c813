import type { SessionInfo, SessionStore } from '@tapetree/session'
import { exitCodes, type ExitCode } from '../command-line/exit-code.ts'
import { usageFailure, Failure } from '../command-line/failure.ts'
import { openStore } from '../host/open-store.ts'
import type { Io } from '../command-line/io.ts'
import { placesOf } from '../host/places.ts'
import { answerInput } from './answer-input.ts'
import { answerPrompt } from './answer-prompt.ts'
import { checkSetup, type Setup } from './check-setup.ts'
import { composePrompt, readStdin, type ComposedPrompt } from './compose-prompt.ts'
import { readOutputSchema } from './output-schema.ts'
import { PrintedRun } from './printed-run.ts'
import type { RunOptions } from './run-options.ts'
import { findSession } from '../host/find-session.ts'

/** From the options to the exit code. `setup` is present if it was already checked, as for a new session. */
export async function printRun(
  options: RunOptions,
  { io, setup: known }: { io: Io; setup: Setup | undefined },
): Promise<ExitCode> {
  const schema = options.outputSchema === undefined ? undefined : await readOutputSchema(options.outputSchema, io)
  const store = await openStore(placesOf(io))
  try {
    const meant = options.session === undefined ? undefined : await meantSession(store, options.session, io.cwd)
    const { model, notices } = known ?? (await setupOf(meant, options, io))
    const prompt = await promptFrom(options, io)
    await using run = await PrintedRun.open({ io, store, options, meant, model, isWhole: schema !== undefined })
    for (const notice of [...notices, ...(prompt?.notices ?? [])]) await run.notice(notice)
    const imageIds = await run.keepImages(prompt?.images ?? [])
    run.letOthersIn()
    await run.resumeFirst()
    const failure =
      options.input === 'jsonl'
        ? await inputFailure(run, { io, prompt, imageIds })
        : await run.report(await answerPrompt(run.session, { text: prompt?.text ?? '', imageIds }, schema))
    await run.end()
    if (failure) throw failure
    return exitCodes.ok
  } finally {
    await store.close()
  }
}

/** An existing session has its own folder and model. */
async function setupOf(meant: SessionInfo | undefined, options: RunOptions, io: Io): Promise<Setup> {
  const { flags, model, toolNames } = options
  return checkSetup({ io: { ...io, cwd: meant?.cwd ?? io.cwd }, flags, model, toolNames, isNew: !meant })
}

/** Undefined if prompts arrive as lines. */
async function promptFrom({ prompt: typed, input }: RunOptions, io: Io): Promise<ComposedPrompt | undefined> {
  const { cwd, home, stdin, stderr, signal } = io
  if (input === 'jsonl') return typed.trim() === '' ? undefined : composePrompt({ typed, piped: '', cwd, home, signal })
  const piped = await readStdin(stdin, {
    signal,
    onTooLong: () => {
      throw usageFailure(
        'The piped input is too large for a prompt. Name a file instead: the agent can read it in parts.',
      )
    },
    onWaiting: () => stderr.write('! Waiting for the end of stdin. If you pipe nothing in, add < /dev/null.\n'),
  })
  return composePrompt({ typed, piped, cwd, home, signal })
}

function inputFailure(
  run: PrintedRun,
  { io, prompt, imageIds }: { io: Io; prompt: ComposedPrompt | undefined; imageIds: string[] },
): Promise<Failure | undefined> {
  return answerInput({
    session: run.session,
    stdin: io.stdin,
    ...(prompt && { first: { text: prompt.text, imageIds } }),
    onEnded: async (ended) => void (await run.report(ended)),
    onProblem: (sentence) => run.notice(sentence),
    onEndOfInput: () => run.endInput(),
  })
}

/** The session to continue. Refuses a log with unacknowledged damage, because a script cannot judge it. */
async function meantSession(store: SessionStore, reference: string, cwd: string): Promise<SessionInfo> {
  const found = await findSession(store, reference, reference === 'last' ? { cwd } : {})
  await using session = await store.open(found.id, { readOnly: true })
  const lost = session.damage.filter(({ isNew }) => isNew)
  if (lost.length === 0) return found
  throw new Failure(exitCodes.damaged, `The log of session ${found.id} is damaged.`, {
    type: 'log-damaged',
    why: `${lost.length === 1 ? 'One place' : `${lost.length} places`} in it cannot be read. Everything else is intact.`,
    next: [`tapetree log verify ${found.id}`, `tapetree log repair ${found.id}`],
  })
}
