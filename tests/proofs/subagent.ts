import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { openFileStore } from '@tapetree/session/stores/file'
import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { KillableAgent } from './resume/killable-agent.ts'
import type { Task } from './resume/words.ts'
import { checkSubagents } from './subagent/check-subagents.ts'

export const name = 'subagent'
export const claim = 'A killed run resumes its subagents, and none starts over.'
export const sizes = { ci: { kills: 10 }, full: { kills: 200 } }

/** A run takes about this long. */
const runMs = 1500
const program = new URL('subagent/agent-process.ts', import.meta.url)

/** Real agents that wait for two subagents each are killed with `kill -9` at random moments: every subagent goes on where it was. */
export async function run(context: FigureContext): Promise<FigureResult> {
  const { say, size, random, seed } = context
  const wanted = sizes[size].kills
  const folder = await context.temporaryFolder()
  const agents = new Agents(await context.temporaryFolder())
  const figures = { kills: 0, sessions: 0, subagentsResumed: 0, linesHeld: 0 }
  const problems: string[] = []
  while (figures.kills < wanted) {
    const task = await newTask(folder)
    const moments = Array.from({ length: 1 + Math.floor(random() * 2.5) }, () => Math.round(random() * runMs))
    const { kills, lines, failures } = await playThrough(task, moments, agents)
    figures.kills += kills
    figures.sessions++
    figures.linesHeld += lines.size
    const store = openFileStore({ folder })
    const checked = await checkSubagents(store, task.sessionId, { lines, marks: task.marks })
    await store.close()
    figures.subagentsResumed += checked.resumed
    const what = `session ${figures.sessions} (seed ${seed}, killed after ${moments.join(', ')} ms)`
    problems.push(...[...failures, ...checked.problems].map((problem) => `${what}: ${problem}`))
  }
  await agents.end()
  for (const problem of problems.slice(0, 20)) say(`PROBLEM ${problem}`)
  if (figures.subagentsResumed === 0) say('PROBLEM no kill came while a subagent was at work')
  const isOk = problems.length === 0 && figures.subagentsResumed > 0
  return { ok: isOk, figures: { ...figures, problems: problems.length } }
}

/** One session, from its prompt to its end, through all the kills: what was durable on the way, and what failed. */
async function playThrough(
  task: Task,
  moments: readonly number[],
  agents: Agents,
): Promise<{ kills: number; lines: Map<number, string>; failures: string[] }> {
  const played: KillableAgent[] = []
  for (const moment of moments) {
    const agent = agents.take()
    await agent.go(task)
    await setTimeout(moment)
    await agent.kill()
    played.push(agent)
  }
  const kills = played.filter(({ end }) => end === undefined).length
  const last = agents.take()
  await last.go(task)
  await last.closed()
  played.push(last)
  const outcome = last.end?.type === 'done' ? last.end.outcome : 'completed'
  return {
    kills,
    lines: new Map(played.flatMap((agent) => [...agent.lines])),
    failures: [
      ...played.flatMap(({ failure }) => (failure === undefined ? [] : [failure])),
      ...(outcome === 'completed' ? [] : [`the run ended as ${outcome}`]),
    ],
  }
}

/** The next one loads while this one works. */
class Agents {
  readonly #compileCache: string
  #next: KillableAgent

  constructor(compileCache: string) {
    this.#compileCache = compileCache
    this.#next = new KillableAgent(compileCache, program)
  }

  take(): KillableAgent {
    const agent = this.#next
    this.#next = new KillableAgent(this.#compileCache, program)
    return agent
  }

  async end(): Promise<void> {
    await this.#next.kill()
  }
}

async function newTask(folder: string): Promise<Task> {
  const store = openFileStore({ folder })
  const session = await store.create()
  await store.close()
  const marks = join(folder, `.marks-${session.id}`)
  await mkdir(marks)
  return { folder, sessionId: session.id, marks }
}
