import { exitCodes } from '../command-line/exit-code.ts'
import { Failure, usageFailure } from '../command-line/failure.ts'
import { write, type Io } from '../command-line/io.ts'

const maxBytes = 64 * 1024

/** Asks on the terminal without echo; without a terminal, reads standard input. */
export async function readSecret(question: string, io: Io): Promise<string> {
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
