import { execFileSync, spawnSync, type SpawnSyncReturns } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeLine } from './mutants.ts'
import { checkTrial, prepareTrial, type Trial } from './trial.ts'

export interface KillCounts {
  restore_kills: number
  git_kills: number
}

/** Kills a rewind at each of its steps, also between two lines, and before and after each git command. */
export async function killEverywhere(options: {
  folder: string
  /** Tries only every so many-th step, beginning with one that the seed decides, and the moments between two lines. */
  every: number
  seed: number
  complain: (problem: string) => void
}): Promise<KillCounts> {
  const { folder, every, seed, complain } = options
  const first = 1 + (seed % every)
  const trials = await Trials.prepare(folder)
  const gitFolder = makeGit(folder)
  const counts: KillCounts = { restore_kills: 0, git_kills: 0 }

  // Every step of the rewind itself.
  const steps = trials.steps()
  for (const [index, step] of steps.entries()) {
    const killAt = index + 1
    if ((killAt - first) % every !== 0 && !step.startsWith(beforeLine)) continue
    const direction = Math.floor(killAt / every) % 2 === 0 ? 'undo' : 'finish'
    await trials.killAt(killAt, { name: `killed ${step}`, direction, complain })
    counts.restore_kills += 1
  }

  // Before and after each git command.
  const counter = join(folder, 'counter')
  for (const when of ['before', 'after'] as const) {
    for (let killAt = first; ; killAt += every) {
      writeFileSync(counter, '0')
      const environment = {
        ...process.env,
        PATH: [gitFolder, process.env['PATH']].join(delimiter),
        HOME: trials.copy,
      }
      writeFileSync(join(gitFolder, 'plan'), `${counter} ${killAt} ${when}`)
      const { signal } = trials.run({ environment })
      if (signal !== 'SIGKILL') break
      const direction = killAt % 2 === 0 ? 'undo' : 'finish'
      await trials.check({ name: `killed ${when} git command ${killAt}`, direction, complain })
      counts.git_kills += 1
    }
  }
  return counts
}

/** Adds a fault to the program and kills it between two lines. Returns the first problem, if one shows. */
export async function killWithFault(fault: string, folder: string): Promise<string | undefined> {
  const trials = await Trials.prepare(folder)
  const problems: string[] = []
  for (const [index, step] of trials.steps(fault).entries()) {
    if (!step.startsWith(beforeLine)) continue
    const complain = (problem: string): void => void problems.push(problem)
    await trials.killAt(index + 1, { name: `killed ${step}`, direction: 'finish', fault, complain })
    if (problems.length > 0) return problems[0]
  }
  return undefined
}

interface KillOptions {
  name: string
  direction: 'finish' | 'undo'
  fault?: string
  complain: (problem: string) => void
}

/** Starts from the same session and files again and again. */
class Trials {
  /** The store of a workspace depends on its path, so every trial has the same. */
  readonly copy: string
  readonly #saved: string
  readonly #trial: Trial

  private constructor(folder: string, trial: Trial) {
    this.copy = join(folder, 'trial')
    this.#saved = join(folder, 'saved')
    this.#trial = trial
    cpSync(this.copy, this.#saved, copying)
  }

  static async prepare(folder: string): Promise<Trials> {
    mkdirSync(folder, { recursive: true })
    return new Trials(folder, await prepareTrial(join(folder, 'trial')))
  }

  /** The names of the steps of a rewind that is not killed. */
  steps(fault?: string): string[] {
    const whole = this.run(fault === undefined ? {} : { fault })
    if (whole.status !== 0)
      throw new Error(`A rewind without a kill failed: ${whole.stderr.toString('utf8').slice(0, 400)}`)
    return JSON.parse(whole.stdout.toString('utf8')) as string[]
  }

  async killAt(killAt: number, { fault, ...options }: KillOptions): Promise<void> {
    const { signal } = this.run({ killAt, ...(fault !== undefined && { fault }) })
    if (signal !== 'SIGKILL') options.complain(`${options.name}: it was not reached`)
    await this.check(options)
  }

  async check(options: Omit<KillOptions, 'fault'>): Promise<void> {
    await checkTrial(this.copy, this.#trial, options)
  }

  run(options: { killAt?: number; fault?: string; environment?: NodeJS.ProcessEnv }): SpawnSyncReturns<Buffer> {
    const { killAt = 0, fault = '', environment } = options
    rmSync(this.copy, { recursive: true, force: true })
    cpSync(this.#saved, this.copy, copying)
    const { sessionId, target } = this.#trial
    const values = [this.copy, sessionId, target, String(killAt), fault]
    return spawnSync(process.execPath, ['-C', '@tapetree/source', program, ...values], {
      ...(environment && { env: environment }),
    })
  }
}

const copying = { recursive: true, preserveTimestamps: true, verbatimSymlinks: true }

const program = fileURLToPath(new URL('killed.ts', import.meta.url))

/** A program `git` that kills its parent before or after one of its calls. */
function makeGit(folder: string): string {
  const place = join(folder, 'bin')
  mkdirSync(place)
  const real = execFileSync('sh', ['-c', 'command -v git']).toString('utf8').trim()
  const script = `#!/bin/sh
read counter at when < '${place}/plan'
n=$(( $(cat "$counter") + 1 )); echo $n > "$counter"
if [ "$n" = "$at" ] && [ "$when" = before ]; then kill -9 $PPID; exit 1; fi
'${real}' "$@"; code=$?
if [ "$n" = "$at" ]; then kill -9 $PPID; fi
exit $code
`
  writeFileSync(join(place, 'git'), script)
  chmodSync(join(place, 'git'), 0o755)
  return place
}
