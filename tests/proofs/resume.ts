import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { openFileStore } from '@tapetree/session/stores/file'
import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { maxTries } from '../../scripts/figure/tries.ts'
import { checkSurvived, type Promised } from './resume/check-survived.ts'
import { KillableAgent } from './resume/killable-agent.ts'
import type { Task } from './resume/words.ts'

export const name = 'resume'
export const claim = 'A killed run resumes: real exit codes, no command runs twice, messages arrive once and in order.'
export const sizes = { ci: { kills: 20 }, full: { kills: 1000 } }

/** A run takes about this long. */
const runMs = 2000
const maxLostTextMs = 250

/** Real agents are killed with `kill -9` at random moments of a run with streaming, three commands and waiting messages. */
export async function run(context: FigureContext): Promise<FigureResult> {
  const { say, size } = context
  const { kills } = sizes[size]
  const trial = new Trial(context, await context.temporaryFolder(), await context.temporaryFolder())
  while (trial.figures.kills < kills) await trial.playOnce()
  for (const answer of [1, 2]) await trial.dieAfterAnswer(answer)
  await trial.crashAgainAndAgain()
  await trial.end()
  for (const problem of trial.problems.slice(0, 20)) say(`PROBLEM ${problem}`)
  const { lostTextMs } = trial.figures
  say(`the oldest text that was shown and lost was ${lostTextMs} ms old, ${maxLostTextMs} are allowed`)
  const isOk = trial.problems.length === 0 && lostTextMs <= maxLostTextMs
  return { ok: isOk, figures: { ...trial.figures, problems: trial.problems.length } }
}

class Trial {
  readonly problems: string[] = []
  readonly figures = { kills: 0, sessions: 0, beforePrompt: 0, lostTextMs: 0, linesHeld: 0, resumes: 0 }
  readonly #context: FigureContext
  readonly #folder: string
  readonly #compileCache: string
  #next: KillableAgent

  constructor(context: FigureContext, folder: string, compileCache: string) {
    this.#context = context
    this.#folder = folder
    this.#compileCache = compileCache
    this.#next = new KillableAgent(compileCache)
  }

  /** One session with its kills; again where text that was lost is older than is allowed, as on a machine that stood still. */
  async playOnce(): Promise<void> {
    const { random, say } = this.#context
    const moments = Array.from({ length: 1 + Math.floor(random() * 2.5) }, () => Math.round(random() * runMs))
    let lostTextMs = await this.#play(moments)
    for (let tries = 1; lostTextMs > maxLostTextMs && tries < maxTries; tries++) {
      say(`text that was lost was ${lostTextMs} ms old; the session is played once more`)
      lostTextMs = await this.#play(moments)
    }
    this.figures.lostTextMs = Math.max(this.figures.lostTextMs, lostTextMs)
  }

  /** Between the commands in the log and their start: a time almost never hits that. */
  async dieAfterAnswer(answer: number): Promise<void> {
    const task = await this.#newTask()
    const promised = nothingPromised()
    takeIn(await this.#runToEnd({ ...task, diesAfterAnswer: answer }), promised)
    this.figures.kills++
    await this.#resumed(task, promised, `killed after answer ${answer}`)
  }

  /** From its prompt to its end, through one kill or several. Gives how old the oldest text was that was lost. */
  async #play(moments: readonly number[]): Promise<number> {
    const { seed } = this.#context
    const task = await this.#newTask()
    const promised = nothingPromised()
    for (const moment of moments) await this.#killAt(moment, task, promised)
    return this.#resumed(task, promised, `seed ${seed}, killed after ${moments.join(', ')} ms`)
  }

  async #resumed(task: Task, promised: Promised, how: string): Promise<number> {
    const agent = await this.#runToEnd({ ...task, insist: true })
    takeIn(agent, promised)
    this.figures.sessions++
    const what = `session ${this.figures.sessions} (${how})`
    if (agent.failure !== undefined) this.problems.push(`${what}: ${agent.failure}`)
    if (promised.lines.size === 0) {
      this.figures.beforePrompt++
      return 0
    }
    const store = openFileStore({ folder: this.#folder })
    const session = await store.open(task.sessionId, { readOnly: true })
    const { problems, lostTextMs } = await checkSurvived(session, promised, task.marks)
    await store.close()
    this.problems.push(...problems.map((problem) => `${what}: ${problem}`))
    this.figures.linesHeld += promised.lines.size
    return lostTextMs
  }

  /** A run that kills its process each time: the third time it waits for a person. */
  async crashAgainAndAgain(): Promise<void> {
    const task = { ...(await this.#newTask()), crashes: true }
    for (let crash = 0; crash < 3; crash++) {
      const agent = await this.#runToEnd(task)
      if (agent.end) this.problems.push(`crash ${crash + 1} of a crash loop did not happen: ${agent.end.type}`)
    }
    const agent = await this.#runToEnd(task)
    if (agent.end?.type !== 'needs-person')
      this.problems.push(`a crash loop goes on: ${agent.end?.type ?? 'killed again'}`)
  }

  async end(): Promise<void> {
    await this.#next.kill()
  }

  async #killAt(moment: number, task: Task, promised: Promised): Promise<void> {
    const agent = this.#takeAgent()
    await agent.go(task)
    await setTimeout(moment)
    const killedAtMs = await agent.kill()
    this.figures.kills++
    const item = agent.deltas.at(-1)?.item
    promised.cuts.push({ deltas: agent.deltas.filter((delta) => delta.item === item), killedAtMs })
    takeIn(agent, promised)
  }

  async #runToEnd(task: Task): Promise<KillableAgent> {
    const agent = this.#takeAgent()
    await agent.go(task)
    await agent.closed()
    this.figures.resumes++
    return agent
  }

  /** The next one loads while this one works. */
  #takeAgent(): KillableAgent {
    const agent = this.#next
    this.#next = new KillableAgent(this.#compileCache)
    return agent
  }

  async #newTask(): Promise<Task> {
    const store = openFileStore({ folder: this.#folder })
    const session = await store.create()
    await store.close()
    const marks = join(this.#folder, `.marks-${session.id}`)
    await mkdir(marks)
    return { folder: this.#folder, sessionId: session.id, marks }
  }
}

function nothingPromised(): Promised {
  return { lines: new Map(), submitted: [], cuts: [] }
}

function takeIn(agent: KillableAgent, promised: Promised): void {
  for (const [seq, crc] of agent.lines) promised.lines.set(seq, crc)
  promised.submitted.push(...agent.submitted)
}
