import { execFileSync, spawnSync, type SpawnSyncReturns } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { checkTrial, prepareTrial, type Trial } from './trial.ts'

export interface KillCounts {
  restore_kills: number
  git_kills: number
}

/** Kills a restore before each of its steps, and the whole program before and after each git command. */
export async function killEverywhere(options: {
  folder: string
  /** Tries only every so many-th step, beginning with one that the seed decides. */
  every: number
  seed: number
  complain: (problem: string) => void
}): Promise<KillCounts> {
  const { folder, every, seed, complain } = options
  const first = 1 + (seed % every)
  // The store of a workspace depends on its path, so every trial has the same.
  const copy = join(folder, 'trial')
  const place = await prepareTrial(copy)
  const saved = join(folder, 'saved')
  cpSync(copy, saved, { recursive: true, preserveTimestamps: true, verbatimSymlinks: true })
  const gitFolder = makeGit(folder)
  const counts: KillCounts = { restore_kills: 0, git_kills: 0 }
  const reset = (): void => {
    rmSync(copy, { recursive: true, force: true })
    cpSync(saved, copy, { recursive: true, preserveTimestamps: true, verbatimSymlinks: true })
  }

  // Every step of the restore itself.
  const whole = runKilled(copy, place, { killAt: 0 })
  if (whole.status !== 0) complain(`a restore without a kill failed: ${whole.stderr.toString('utf8').slice(0, 400)}`)
  const steps = Number(whole.stdout.toString('utf8'))
  for (let killAt = first; killAt <= steps; killAt += every) {
    reset()
    const { signal } = runKilled(copy, place, { killAt })
    if (signal !== 'SIGKILL') complain(`step ${killAt} of ${steps} was not reached`)
    await checkTrial(copy, place, {
      name: `killed at step ${killAt}`,
      direction: killAt % 2 === 0 ? 'undo' : 'finish',
      complain,
    })
    counts.restore_kills += 1
  }

  // Before and after each git command.
  const counter = join(folder, 'counter')
  for (const when of ['before', 'after'] as const) {
    for (let killAt = first; ; killAt += every) {
      reset()
      writeFileSync(counter, '0')
      const environment = {
        ...process.env,
        PATH: [gitFolder, process.env['PATH']].join(delimiter),
        HOME: copy,
      }
      writeFileSync(join(gitFolder, 'plan'), `${counter} ${killAt} ${when}`)
      const { signal } = runKilled(copy, place, { killAt: 0, environment })
      if (signal !== 'SIGKILL') break
      const direction = killAt % 2 === 0 ? 'undo' : 'finish'
      await checkTrial(copy, place, { name: `killed ${when} git command ${killAt}`, direction, complain })
      counts.git_kills += 1
    }
  }
  return counts
}

const program = fileURLToPath(new URL('killed.ts', import.meta.url))

function runKilled(
  copy: string,
  { sessionId, target }: Trial,
  { killAt, environment }: { killAt: number; environment?: NodeJS.ProcessEnv },
): SpawnSyncReturns<Buffer> {
  return spawnSync(process.execPath, ['-C', '@tapetree/source', program, copy, sessionId, target, String(killAt)], {
    ...(environment && { env: environment }),
  })
}

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
