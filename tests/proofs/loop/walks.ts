import { Chance } from '../../corpus/chance.ts'
import { Scene, type Base } from './scene.ts'
import type { Case, Setup } from './setup.ts'

/** A case that was played to its end. */
export interface Played extends Case {
  problem: string | undefined
  scene: Scene
}

/** Where a family of cases begins. */
interface Beginning {
  setup: Setup
  begin: readonly string[]
}

export async function play({ setup, actions }: Case, base: Base): Promise<Played> {
  const scene = await Scene.open(setup, base)
  const taken = await takeAll(scene, actions)
  return finished(scene, taken)
}

/** Every sequence of actions of this length that begins so, one after the other: each is played from the start. */
export async function* everySequence(
  { setup, begin, depth }: Beginning & { depth: number },
  base: Base,
  note: (what: string) => void,
): AsyncGenerator<Played> {
  const choices: Choice[] = []
  do {
    note(JSON.stringify({ setup, actions: [...begin, ...choices.map(({ of, index }) => of[index])] }))
    const scene = await Scene.open(setup, base)
    const taken = await takeAll(scene, begin)
    for (let place = begin.length; place < depth && !scene.problem; place++) {
      const choice = (choices[place - begin.length] ??= { of: scene.actions(), index: 0 })
      const action = choice.of[choice.index] as string
      taken.push(action)
      if (!(await scene.take(action)))
        throw new Error(`The same actions did not lead to the same place: ${taken.join(' ')}`)
    }
    yield await finished(scene, taken)
  } while (toNext(choices))
}

interface Choice {
  of: readonly string[]
  index: number
}

/** The next sequence in order; false after the last one. */
function toNext(choices: Choice[]): boolean {
  for (let last = choices.at(-1); last; last = choices.at(-1)) {
    if (++last.index < last.of.length) return true
    choices.pop()
  }
  return false
}

/** What comes from outside and may come at any moment. */
const sudden = ['steer', 'follow-up', 'abort', 'remove', 'hold', 'note', 'crash']

/** After this beginning every action, and while its effects are still under way something from outside. */
export async function* everyPair(
  { setup, begin, ticks }: Beginning & { ticks: readonly number[] },
  base: Base,
  note: (what: string) => void,
): AsyncGenerator<Played> {
  const scene = await Scene.open(setup, base)
  await takeAll(scene, begin)
  for (const first of scene.actions()) {
    for (const second of sudden) {
      for (const tick of ticks) {
        const actions = [...begin, `${first}~${tick}~${second}`]
        note(JSON.stringify({ setup, actions }))
        yield await play({ setup, actions }, base)
      }
    }
  }
}

/** A long way through a random setup. */
export async function randomWalk(random: () => number, base: Base): Promise<Played> {
  const chance = new Chance(random)
  const scene = await Scene.open(randomSetup(chance), base)
  const taken: string[] = []
  const length = 3 + chance.below(25)
  for (let step = 0; step < length && !scene.problem; step++) {
    const action = randomAction(scene, chance)
    if (await scene.take(action)) taken.push(action)
  }
  return finished(scene, taken)
}

/** Leaves out what is not needed to fail. */
export async function shrink(failed: Case, base: Base): Promise<Played> {
  let best = await play(failed, base)
  if (!best.problem) return best
  for (let index = 0; index < best.actions.length;) {
    const without = { setup: best.setup, actions: best.actions.toSpliced(index, 1) }
    const again = await play(without, base)
    if (again.problem) best = again
    else index++
  }
  return best
}

/** The actions that could be taken. */
async function takeAll(scene: Scene, actions: readonly string[]): Promise<string[]> {
  const taken: string[] = []
  for (const action of actions) {
    if (scene.problem) break
    if (await scene.take(action)) taken.push(action)
  }
  return taken
}

async function finished(scene: Scene, actions: readonly string[]): Promise<Played> {
  if (!scene.problem) await scene.finish()
  return { setup: scene.setup, actions, problem: scene.problem, scene }
}

function randomSetup(chance: Chance): Setup {
  return {
    policy: chance.of(['skip-remaining', 'after-batch', 'interrupt']),
    calls: chance.of([
      ['look', 'look'],
      ['look', 'look'],
      ['write', 'write'],
      ['look', 'write'],
      ['command', 'look'],
      ['look', 'look', 'command', 'write'],
    ]),
    begins: chance.of(['with-calls', 'before-the-answer']),
    isAsking: chance.is(0.25),
    isDiskSlow: chance.is(0.4),
    isDeaf: chance.is(0.15),
    hasDeadline: chance.is(0.3),
    keepsCheckpoint: chance.is(0.5),
    hasBackground: chance.is(0.5),
    tail: chance.of(['end', 'end', 'end', 'end', 'end', 'end', 'end', 'end', 'error', 'overflow']),
  }
}

function randomAction(scene: Scene, chance: Chance): string {
  const first = pick([...scene.actions(), ...oddActions(scene, chance)], chance)
  if (chance.is(0.85)) return first
  return `${first}~${chance.below(30)}~${pick([...scene.actions(), ...oddActions(scene, chance)], chance)}`
}

/** What is possible beside the actions that are gone through one by one. */
function oddActions(scene: Scene, chance: Chance): string[] {
  if (chance.is(0.8)) return []
  const running = scene.actions().flatMap((action) => (action.startsWith('tool:') ? [`fail:${action.slice(5)}`] : []))
  const line = 2 + chance.below(6)
  return [`crash-before:${line}`, `crash-after:${line}`, 'cut', 'remove', 'hold', 'note', ...running]
}

/** What is rare in life is rare here; what only takes time is done often enough to get on. */
const weights: Record<string, number> = {
  disk: 12,
  delta: 3,
  call: 3,
  tool: 4,
  allow: 4,
  time: 4,
  deliver: 4,
  release: 2,
  steer: 2,
  'follow-up': 1.5,
  compaction: 0.7,
  filling: 1.5,
  abort: 0.5,
  crash: 0.3,
  'crash-before': 0.3,
  'crash-after': 0.3,
}

function pick(actions: readonly string[], chance: Chance): string {
  const weightOf = (action: string): number => weights[action.split(':')[0] as string] ?? 1
  let rest = (chance.below(1000) / 1000) * actions.reduce((sum, action) => sum + weightOf(action), 0)
  return actions.find((action) => (rest -= weightOf(action)) < 0) ?? (actions[0] as string)
}
