import { mkdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { randomFrom } from '../../../scripts/figure/random.ts'
import { WireScreen } from '../../../packages/server/src/testing/wire-screen.ts'
import { checkLog } from '../sync/check-log.ts'
import { differenceOf, foldOf, Referee } from '../sync/referee.ts'
import { readLog } from '../sync/stage.ts'
import { KillableServer, type Ready } from './killable-server.ts'
import type { Task } from './words.ts'

export interface KillTrialOptions {
  seed: number
  folder: string
  compileCache: string
}

export interface KillTrialResult {
  problems: string[]
  /** From the start of a process until it lets clients into a new session: nothing to recover and nobody waits. */
  bareMs: number
  /** From the kill until the new process lets clients in, and until the last of them has the whole log. */
  readyMs: number
  convergedMs: number
  acknowledged: number
  commands: number
}

const clientCount = 20
const restMs = 120_000

/** Twenty clients of a server that dies in the middle of a turn, and of the one that comes after it. */
export async function killOnce(options: KillTrialOptions): Promise<KillTrialResult> {
  const { seed, folder, compileCache } = options
  const random = randomFrom(seed)
  const marks = join(folder, 'marks')
  await mkdir(folder)
  const referee = new Referee(() => undefined)
  const task: Task = { folder, seed, play: 'work', marks }
  const startedAt = performance.now()
  let server = new KillableServer(compileCache)
  const { url, token, sessionId, port } = await server.host(task)
  const bareMs = performance.now() - startedAt
  const headers = { authorization: `Bearer ${token}` }
  const screens = Array.from(
    { length: clientCount },
    (_, index) => new WireScreen({ id: `client-${index}`, url, headers, watcher: referee, window: 500, backoffMs: 20 }),
  )
  try {
    for (const screen of screens) screen.connect()
    await until(() => screens.every(({ isAttached }) => isAttached))
    for (const [index, screen] of screens.entries()) if (index === 0 || random() < 0.15) say(screen, referee)
    // In the middle of a turn: when a command runs, or the model is speaking, and then anywhere within a moment.
    await until(() => screens.some(({ transcript }) => transcript.run !== null))
    await setTimeout(random() * 600)
    const killedAt = performance.now()
    await server.kill()
    server = new KillableServer(compileCache)
    for (const screen of screens) if (random() < 0.1) say(screen, referee)
    const ready: Ready = await server.host({ ...task, sessionId, port, token })
    const readyMs = performance.now() - killedAt
    await until(() => screens.every(({ isAttached }) => isAttached))
    const isAtRest = await until(() => isResting(screens))
    const convergedMs = performance.now() - killedAt
    const lines = readLog(folder, ready.sessionId)
    const problems = [
      ...(isAtRest ? [] : ['there was no rest']),
      ...referee.violations.map(({ invariant, message }) => `${invariant}: ${message}`),
      ...checkLog({ lines, commands: referee.commands, acks: referee.acks, closings: [] }).map(
        ({ invariant, message }) => `${invariant}: ${message}`,
      ),
      ...checkSeen(referee, lines),
      ...checkScreens(screens, lines),
      ...checkMarks(await readFile(marks, 'utf8').catch(() => ''), referee),
    ]
    const acknowledged = [...referee.acks.values()].filter(({ ok }) => ok).length
    return { problems, bareMs, readyMs, convergedMs, acknowledged, commands: referee.commands.size }
  } finally {
    await server.kill()
    for (const screen of screens) screen.cut()
    await rm(folder, { recursive: true, force: true, maxRetries: 3 })
  }
}

function say(screen: WireScreen, referee: Referee): void {
  const id = `cmd-${referee.commands.size + 1}`
  const args = { text: `job ${referee.commands.size + 1}`, when_busy: 'queue' }
  referee.commands.set(id, { id, op: 'prompt', args })
  screen.command('prompt', args, id)
}

function isResting(screens: readonly WireScreen[]): boolean {
  const head = Math.max(...screens.map(({ cursor }) => cursor?.seq ?? 0))
  return screens.every(({ isAttached, unacknowledged, cursor, state, transcript }) => {
    const run = state.get('run')?.value as { is_busy: boolean } | undefined
    const isDone = run?.is_busy === false && transcript.waiting.length === 0 && transcript.run === null
    return isAttached && isDone && unacknowledged.size === 0 && cursor?.seq === head
  })
}

function checkSeen({ seen }: Referee, lines: readonly string[]): string[] {
  return [...seen].flatMap(([seq, text]) =>
    lines[seq - 1] === text ? [] : [`line ${seq} was sent, and is not in the log`],
  )
}

function checkScreens(screens: readonly WireScreen[], lines: readonly string[]): string[] {
  const whole = foldOf(lines)
  return screens.flatMap(({ id, transcript }) => {
    const difference = differenceOf(transcript, whole)
    return difference === undefined ? [] : [`${id} does not show the log: ${difference}`]
  })
}

/** Every command that the model gave ran once, and none twice. A prompt is a job, and has one command. */
function checkMarks(marks: string, { acks, commands }: Referee): string[] {
  const runs = Map.groupBy(marks.split('\n').filter(Boolean), (job) => job)
  return [...commands].flatMap(([id, { args }]) => {
    const count = runs.get(String(args['text']))?.length ?? 0
    if (count > 1) return [`the command of ${id} ran ${count} times`]
    return acks.get(id)?.ok && count === 0 ? [`${id} was acknowledged, and its command never ran`] : []
  })
}

async function until(isTrue: () => boolean): Promise<boolean> {
  const end = performance.now() + restMs
  while (!isTrue()) {
    if (performance.now() > end) return false
    await setTimeout(3)
  }
  return true
}
