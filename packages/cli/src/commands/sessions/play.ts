import type { Player, PlaybackEvent, PlayerPosition } from '@tapetree/session/view'
import { stylesFor, isInteractive, write, printJson, type Styles, type Input, type Io } from '../../command-line/io.ts'
import { flag, textOption, type Invocation } from '../../command-line/command.ts'
import { exitCodes, type ExitCode } from '../../command-line/exit-code.ts'
import { usageFailure, Failure } from '../../command-line/failure.ts'
import { findSession } from '../../host/find-session.ts'
import { actionsIn, speedText } from '../../play/play-keys.ts'
import { Playback, type PlaybackState } from '../../play/playback.ts'
import { Progress } from '../../sessions/progress.ts'
import { withStore } from '../../sessions/with-store.ts'
import { snakeNames } from '../../text/json-text.ts'
import { harmlessLine, harmless } from '../../text/harmless.ts'
import { fitText } from '../../text/display-width.ts'
import { callArgument, contentText } from '../../text/content-text.ts'
import { counted } from '../../text/amounts.ts'

const shortPauseMs = 2000

export async function runPlay(invocation: Invocation, io: Io): Promise<ExitCode> {
  const isJson = flag(invocation, 'json')
  const hasScreen = isInteractive(io) && !isJson
  const speed = speedOf(textOption(invocation, 'speed'), hasScreen ? 1 : Infinity)
  const player = await playerOf(invocation, io)
  const from = textOption(invocation, 'from')
  if (from !== undefined) player.seek(positionOf(from, player))
  const maxGapMs = flag(invocation, 'real-time') ? Infinity : shortPauseMs
  if (hasScreen) return playOnScreen({ player, speed, maxGapMs }, io)
  const styles = stylesFor(io.stdout, io.env)
  const show = (event: PlaybackEvent): Promise<void> =>
    isJson ? printJson(io, snakeNames(event)) : write(io.stdout, eventText(event, styles))
  for await (const event of player.play({ speed, maxGapMs, signal: io.signal })) await show(event)
  return exitCodes.ok
}

async function playerOf(invocation: Invocation, io: Io): Promise<Player> {
  const [reference = 'last'] = invocation.positionals
  using _progress = new Progress(io.stderr, 'Reading the session')
  return await withStore(io, async (store) => {
    const { id } = await findSession(store, reference, { cwd: io.cwd })
    await using session = await store.open(id, { readOnly: true })
    return await session.play()
  })
}

function speedOf(value: string | undefined, otherwise: number): number {
  if (value === undefined) return otherwise
  if (value === 'max') return Infinity
  const speed = Number(value.replace(/[x×]$/, ''))
  if (value !== '' && Number.isFinite(speed) && speed > 0) return speed
  throw usageFailure(`--speed must be a number such as 1, 2 or 10, or max, not ${JSON.stringify(value)}.`)
}

async function playOnScreen(
  { player, speed, maxGapMs }: { player: Player; speed: number; maxGapMs: number },
  io: Io,
): Promise<ExitCode> {
  const screen = new PlayScreen(io)
  const interrupted = new AbortController()
  const playback = new Playback({
    player,
    speed,
    maxGapMs,
    show: (event) => screen.show(event),
    status: (state) => screen.status(state),
    signal: AbortSignal.any([io.signal, interrupted.signal]),
  })
  using _keys = readKeys(io.stdin, (typed) => {
    for (const action of actionsIn(typed)) {
      if (action.type === 'interrupt') interrupted.abort()
      else playback.act(action)
    }
  })
  try {
    await playback.run()
    return exitCodes.ok
  } catch (error) {
    if (interrupted.signal.aborted) return exitCodes.interrupted
    throw error
  } finally {
    screen.close()
  }
}

/** Each key as it is pressed, without echo, until disposed. */
function readKeys(stdin: Input, listener: (typed: string) => void): Disposable {
  const terminal = stdin as Input & { setRawMode?: (isRaw: boolean) => void }
  const hear = (typed: Buffer | string): void => listener(String(typed))
  terminal.setRawMode?.(true)
  stdin.on('data', hear)
  return {
    [Symbol.dispose]: () => {
      stdin.off('data', hear)
      stdin.pause()
      terminal.setRawMode?.(false)
    },
  }
}

const minPrefixLength = 4

/** Resolves `--from`: the number of an entry, its id or an id prefix, or a time. */
function positionOf(from: string, player: Player): PlayerPosition {
  if (/^#?\d{1,9}$/.test(from)) return { seq: Number(from.replace('#', '')) }
  if (from.length >= minPrefixLength) {
    const event = player.events().find(({ lineId }) => lineId.startsWith(from))
    if (event) return { seq: event.seq }
  }
  if (/^\d{4}-\d{2}-\d{2}/.test(from) && !Number.isNaN(Date.parse(from))) return { time: from }
  throw new Failure(
    exitCodes.notFound,
    `There is no entry or time ${JSON.stringify(harmlessLine(from))} in this session.`,
    {
      type: 'entry-not-found',
      why: 'Use the number of an entry, its id, or a time such as 2026-11-15T12:00.',
      next: ['tapetree sessions show <session> --tree'],
    },
  )
}

const eraseLine = '\r\u001b[K'
const defaultColumns = 80

/** Events as lines, and below them a status line with the position. */
class PlayScreen {
  readonly #io: Io
  readonly #styles: Styles
  #status = ''

  constructor(io: Io) {
    this.#io = io
    this.#styles = stylesFor(io.stdout, io.env)
  }

  async show(event: PlaybackEvent): Promise<void> {
    await write(this.#io.stdout, `${eraseLine}${eventText(event, this.#styles)}${this.#status}`)
  }

  status({ position, length, speed, isPaused, next }: PlaybackState): void {
    const { columns = defaultColumns } = this.#io.stdout
    const at = next ? ` · ${clockOf(next.timestamp)}` : ''
    const text = `${isPaused ? '❚❚' : '▶'} ${position}/${length}${at} · ${speedText(speed)} · space . ← → + - q`
    this.#status = this.#styles.dim(fitText(text, columns - 1))
    this.#io.stdout.write(`${eraseLine}${this.#status}`)
  }

  close(): void {
    this.#io.stdout.write(eraseLine)
  }
}

const maxOutputLines = 20
const maxThoughtLines = 10

/** An event for a terminal: time, author, content. Cuts long output; the session has all of it. */
function eventText(event: PlaybackEvent, styles: Styles): string {
  const { dim, bold, cyan, green, red, yellow } = styles
  const time = dim(clockOf(event.timestamp))
  const line = (who: string, text: string): string => `${time} ${who} ${indented(harmless(text))}\n`
  switch (event.type) {
    case 'session_start':
      return line(dim('start'), event.cwd ?? '')
    case 'session_end':
      return line(dim('end'), event.reason)
    case 'user_prompt':
      return line(bold(cyan('user')), `${event.text}${imagesText(event.images.length)}`)
    case 'agent_message':
      return line(bold(green('agent')), `${event.text}${imagesText(event.images.length)}`)
    case 'agent_thought':
      return event.text === '' ? '' : line(dim('thought'), clipped(event.text, maxThoughtLines))
    case 'tool_call':
      return line(yellow('call'), `${event.name} ${callArgument(event)}`)
    case 'tool_call_update':
      if (event.status === 'running') return ''
      return line(
        event.status === 'failed' ? red('failed') : dim('result'),
        clipped(contentText(event.output), maxOutputLines),
      )
    case 'plan':
      return line(dim('plan'), event.items.map(({ text, status }) => `[${status}] ${text}`).join('\n'))
    case 'permission':
      if (event.status === 'requested') return line(yellow('asks'), `${event.tool}: ${event.title}`)
      return line(yellow('answer'), event.status)
    case 'file_read':
      return line(dim('read'), `${event.path} (${event.size} bytes)`)
    case 'file_write':
      return line(dim('wrote'), `${event.path} (${event.size} bytes)`)
    case 'error':
      return line(red('error'), event.message)
    default:
      return event satisfies never
  }
}

/** In local time. */
function clockOf(timestamp: string): string {
  const time = new Date(timestamp)
  return Number.isNaN(time.getTime()) ? '--:--:--' : time.toTimeString().slice(0, 8)
}

function indented(text: string): string {
  return text.trimEnd().replaceAll(/\n(?=[^\n])/g, `\n${' '.repeat(9)}`)
}

function clipped(text: string, lines: number): string {
  const all = text.split('\n')
  return all.length <= lines
    ? text
    : [...all.slice(0, lines), `… ${counted(all.length - lines, 'more line')}`].join('\n')
}

function imagesText(count: number): string {
  return count === 0 ? '' : ` (${counted(count, 'image')})`
}
