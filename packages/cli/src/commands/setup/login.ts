import { createModelRegistry } from '@tapetree/agent/models'
import { flag, type CommandRun } from '../../command-line/command.ts'
import { didYouMean } from '../../text/did-you-mean.ts'
import { exitCodes } from '../../command-line/exit-code.ts'
import { Failure, usageFailure } from '../../command-line/failure.ts'
import { harmlessLine } from '../../text/harmless.ts'
import { surroundingsOf, type Surroundings } from '../../host/surroundings.ts'
import { write, printJson, type Io } from '../../command-line/io.ts'

export const login: CommandRun = async (invocation, io) => {
  const around = await surroundingsOf(io, { cwd: io.cwd })
  const provider = providerNamed(invocation.positionals[0] ?? '', around)
  const say = async (result: Record<string, unknown>, sentences: readonly string[]): Promise<void> => {
    if (flag(invocation, 'json')) await printJson(io, { provider: provider.id, ...result })
    else for (const sentence of sentences) await write(io.stdout, `${harmlessLine(sentence)}\n`)
  }
  if (flag(invocation, 'remove')) {
    const { removedFrom, notes } = await around.credentials.remove(provider.id)
    if (removedFrom.length === 0) throw noKey(provider.id, notes)
    await say({ removedFrom }, [`Removed the key for ${provider.name} from the ${removedFrom.join(' and the ')}.`])
    return exitCodes.ok
  }
  const key = await readSecret(`Key for ${harmlessLine(provider.name)} (hidden): `, io)
  if (key === '') {
    throw usageFailure(`No key was given for ${provider.id}.`, [
      `tapetree login ${provider.id}`,
      `tapetree login ${provider.id} < file`,
    ])
  }
  const isChecked = flag(invocation, 'check')
  if (isChecked) await checkKey(key, { provider, around, io })
  const { source, notes } = await around.credentials.store(provider.id, key)
  await say({ keptIn: source, isChecked }, [
    ...(isChecked ? [`${provider.name} accepts the key.`] : []),
    ...(source === 'keyring' ? [`Stored the key for ${provider.name} in the system keyring.`] : notes.slice(-1)),
    ...variableNotes(provider, io.env),
    `Try: tapetree models --provider ${provider.id}`,
  ])
  return exitCodes.ok
}

type Provider = Surroundings['registry']['providers'][number]

function providerNamed(typed: string, { registry }: Surroundings): Provider {
  const known = registry.providers.map(({ id }) => id)
  const provider = registry.providers.find(({ id }) => id === typed)
  if (provider === undefined) {
    const message = `There is no provider ${JSON.stringify(harmlessLine(typed))}.${didYouMean(typed, known)}`
    throw new Failure(exitCodes.noModel, message, {
      type: 'unknown-provider',
      why: `Known providers: ${known.join(', ')}. Add your own in the settings, under providers.`,
      next: ['tapetree models', 'tapetree config path'],
    })
  }
  if (provider.keyVariables.length === 0)
    throw usageFailure(`${provider.name} does not need a key.`, ['tapetree models'])
  return provider
}

async function checkKey(
  key: string,
  { provider, around, io }: { provider: Provider; around: Surroundings; io: Io },
): Promise<void> {
  const registry = createModelRegistry({
    providers: around.settings.values.providers,
    credentials: { keyFor: () => Promise.resolve({ value: key, origin: 'what was typed' }) },
    env: {},
  })
  const check = await registry.validateKey(provider.id, { signal: io.signal })
  if (check.type === 'ok') return
  throw new Failure(exitCodes.noModel, `${check.message} The key was not stored.`, {
    type: `key-${check.type}`,
    ...(check.type === 'unreachable' && { why: 'Without --check the key is stored unchecked.' }),
    next: [`tapetree login ${provider.id}`],
  })
}

/** An environment variable takes precedence over a stored key. */
function variableNotes({ keyVariables }: Provider, env: Io['env']): string[] {
  const set = keyVariables.find((variable) => env[variable]?.trim())
  return set === undefined ? [] : [`The environment variable ${set} is set and takes precedence.`]
}

function noKey(provider: string, notes: readonly string[]): Failure {
  return new Failure(exitCodes.notFound, `No key is stored for ${provider}.`, {
    type: 'no-key',
    ...(notes.length > 0 && { why: notes.join(' ') }),
    next: [`tapetree login ${provider}`],
  })
}

const maxBytes = 64 * 1024

/** Asks on the terminal without echo; without a terminal, reads standard input. */
async function readSecret(question: string, io: Io): Promise<string> {
  if (io.stdin.isTTY !== true) return (await readAll(io)).trim()
  try {
    return (await readHidden(question, io)).trim()
  } finally {
    await write(io.stderr, '\n')
  }
}

async function readAll({ stdin }: Io): Promise<string> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of stdin) {
    const bytes = Buffer.from(chunk as Uint8Array)
    length += bytes.length
    if (length > maxBytes) throw usageFailure('The text on standard input is too long for a key.')
    chunks.push(bytes)
  }
  return Buffer.concat(chunks).toString()
}

interface Typing {
  type: 'typing' | 'done' | 'stopped'
  text: string
  /** The start of an incomplete escape sequence. */
  begun: string
}

async function readHidden(question: string, { stdin, stderr, signal }: Io): Promise<string> {
  const terminal = stdin as Io['stdin'] & { setRawMode?: (isRaw: boolean) => unknown }
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  let typing: Typing = { type: 'typing', text: '', begun: '' }
  const take = (chunk: Buffer | string): void => {
    typing = afterKeys(typing, String(chunk))
    if (typing.type === 'done') resolve(typing.text)
    if (typing.type === 'stopped') reject(interrupted())
  }
  const stop = (): void => reject(interrupted())
  // Before the prompt, so that fast typing is not echoed.
  terminal.setRawMode?.(true)
  signal.addEventListener('abort', stop, { once: true })
  stdin.on('data', take)
  stdin.once('end', stop)
  // The user may answer or interrupt while the prompt is being written.
  promise.catch(() => undefined)
  try {
    await write(stderr, question)
    return await promise
  } finally {
    stdin.off('data', take)
    stdin.off('end', stop)
    signal.removeEventListener('abort', stop)
    terminal.setRawMode?.(false)
    stdin.pause()
  }
}

/**
 * Enter submits, Ctrl-C and Ctrl-D cancel, Backspace deletes a character, Ctrl-U deletes all. Ignores arrows, other keys and paste markers.
 */
export function afterKeys({ text, begun }: Typing, keys: string): Typing {
  const left = (begun + keys).replaceAll(wholeSequence, '')
  const [unfinished = ''] = unfinishedSequence.exec(left) ?? []
  let typed = text
  for (const key of left.slice(0, left.length - unfinished.length)) {
    if (key === '\r' || key === '\n') return { type: 'done', text: typed, begun: '' }
    if (key === '\u0003' || key === '\u0004') return { type: 'stopped', text: '', begun: '' }
    if (key === '\u007f' || key === '\b') typed = typed.slice(0, -1)
    else if (key === '\u0015') typed = ''
    else if (key >= ' ') typed += key
  }
  return { type: 'typing', text: typed, begun: unfinished }
}

// oxlint-disable no-control-regex
/** Escape sequences of keys, and replies of the terminal. */
const wholeSequence =
  /\u001b(?:\[[0-?]*[ -/]*[@-~]|O[ -~]|[\]P^_X][^\u0000-\u001f]*(?:\u0007|\u001b\\)|(?![[O\]P^_X])[ -~])/g
const unfinishedSequence = /\u001b(?:\[[0-?]*[ -/]*|O|[\]P^_X][^\u0000-\u001f]*\u001b?)?$/
// oxlint-enable no-control-regex

function interrupted(): Failure {
  return new Failure(exitCodes.interrupted, 'Interrupted. The key was not stored.', { type: 'interrupted' })
}
