import { openFileStore } from '@tapetree/session/stores/file'
import { mkdir, readFile } from 'node:fs/promises'
import { join, extname } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { exitCodes } from '../command-line/exit-code.ts'
import { Failure } from '../command-line/failure.ts'
import type { Io } from '../command-line/io.ts'
import { tests, tourPrompt, type TourNews } from './tour-script.ts'
import type { TourTask } from './tour-process.ts'
import type { Storyteller } from './storyteller.ts'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

export interface TourOptions {
  /** Empty; the caller removes it. */
  folder: string
  isFast: boolean
  story: Storyteller
  io: Pick<Io, 'env' | 'signal'>
}

/** A session from start to end, with a crash in the middle. */
export async function runTour({ folder, isFast, story, io }: TourOptions): Promise<void> {
  const task: TourTask = {
    sessions: join(folder, 'sessions'),
    cwd: join(folder, 'work'),
    pace: isFast ? { wordMs: 0, testSeconds: 0.2 } : { wordMs: 60, testSeconds: 1.2 },
  }
  await mkdir(task.cwd)
  await story.chapter('A session starts', [
    'The model of this tour is scripted: it needs no key and no network. Everything else is real: the agent,',
    `its tools, the log, and the folder they work in, ${folder}.`,
  ])
  await story.user(tourPrompt)
  const sessionId = await untilSecondTest(task, { story, io })

  await story.chapter('The agent crashes', [
    'The agent is gone, as after a crash or a power cut. Every line that it wrote is in the log, and the',
    'command keeps running, because it is not a child process of the agent.',
  ])
  await lastTestOf(task.cwd, io)
  await story.tell(`The last test has just written its line, without an agent to see it.`)

  await story.chapter('Another process resumes', [
    'It finds the open call in the log, finds the command, and takes its real result. Nothing runs twice.',
  ])
  await toTheEnd({ ...task, sessionId }, { story, io })

  const store = openFileStore({ folder: task.sessions })
  const report = await store.verify(sessionId)
  await store.close()
  if (!report.isIntact) throw brokenTour('the log is damaged')
  await story.chapter('The result', [
    `The log has ${report.lines} lines. The checksum of each is correct, and none is missing.`,
    'You can branch from any point in it, and replay all of it.',
  ])
}

interface Surroundings {
  story: Storyteller
  io: Pick<Io, 'env' | 'signal'>
}

/** Lets the agent work until its tests run, then kills it. */
async function untilSecondTest(task: TourTask, { story, io }: Surroundings): Promise<string> {
  const agent = startTourAgent(task, io.env)
  const stop = stopWith(io.signal, agent)
  let sessionId = ''
  try {
    for await (const news of agent.news) {
      if (news.type === 'session') ({ sessionId } = news)
      await story.news(news)
      if (!isSecondTest(news)) continue
      await agent.kill()
      await story.command(`kill -9 ${agent.pid}`)
      return sessionId
    }
  } finally {
    stop()
  }
  io.signal.throwIfAborted()
  throw brokenTour('the agent ended before its tests did')
}

async function toTheEnd(task: TourTask, { story, io }: Surroundings): Promise<void> {
  const agent = startTourAgent(task, io.env)
  const stop = stopWith(io.signal, agent)
  let outcome = ''
  try {
    for await (const news of agent.news) {
      await story.news(news)
      if (news.type === 'end') ({ outcome } = news)
    }
  } finally {
    stop()
  }
  io.signal.throwIfAborted()
  if (outcome !== 'completed') throw brokenTour(`the second run ended with ${JSON.stringify(outcome)}`)
}

function isSecondTest(news: TourNews): boolean {
  return news.type === 'output' && news.text.includes(`test 2 of ${tests}`)
}

const patienceMs = 60_000

/** The command writes one line for each test into a file of the folder. */
async function lastTestOf(cwd: string, { signal }: Pick<Io, 'signal'>): Promise<void> {
  const until = Date.now() + patienceMs
  while (Date.now() < until) {
    const text = await readFile(join(cwd, 'tests.txt'), 'utf8').catch(() => '')
    if (text.includes(`test ${tests} of ${tests}`)) return
    await wait(50, undefined, { signal })
  }
  throw brokenTour('the command did not keep running')
}

function stopWith(signal: AbortSignal, agent: TourAgent): () => void {
  const kill = (): void => void agent.kill()
  signal.addEventListener('abort', kill, { once: true })
  return () => signal.removeEventListener('abort', kill)
}

function brokenTour(why: string): Failure {
  return new Failure(exitCodes.runFailed, `The tour failed: ${why}.`, {
    type: 'tour-failed',
    next: ['tapetree doctor'],
  })
}

/** The agent process, as the tour sees it. */
interface TourAgent {
  readonly pid: number
  readonly news: AsyncIterable<TourNews>
  /** Like `kill -9`. Resolves when the process is gone. */
  kill(): Promise<void>
}

function startTourAgent(task: TourTask, env: Readonly<Record<string, string | undefined>>): TourAgent {
  const extension = extname(import.meta.url)
  const program = fileURLToPath(new URL(`./tour-process${extension}`, import.meta.url))
  const flags = extension === '.ts' ? ['-C', '@tapetree/source'] : []
  const child = spawn(process.execPath, [...flags, program, JSON.stringify(task)], {
    env: { PATH: env['PATH'], HOME: env['HOME'], TMPDIR: env['TMPDIR'] },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const closed = once(child, 'close')
  return {
    pid: child.pid ?? 0,
    news: readNews(createInterface({ input: child.stdout })),
    kill: async () => {
      child.kill('SIGKILL')
      await closed
    },
  }
}

async function* readNews(lines: AsyncIterable<string>): AsyncGenerator<TourNews> {
  for await (const line of lines) yield JSON.parse(line) as TourNews
}
