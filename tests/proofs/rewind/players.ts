import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import type { PlayedHistory } from './history.ts'

/** Git waits for the disk, so there is one player more than processors. */
const maxPlayers = availableParallelism() + 1

/**
 * Plays the histories of these seeds in several processes that stay. Starting git takes the longer the more memory a process
 * has, so each of them has little.
 */
export async function playInProcesses(
  seeds: readonly number[],
  { folder, onPlayed }: { folder: string; onPlayed: (seed: number, played: PlayedHistory) => void },
): Promise<void> {
  const rest = seeds.values()
  const playRest = async (): Promise<void> => {
    const player = new Player(folder)
    try {
      for (const seed of rest) onPlayed(seed, await player.play(seed, seeds.length === 1))
    } finally {
      await player.end()
    }
  }
  await Promise.all(Array.from({ length: Math.min(maxPlayers, seeds.length) }, playRest))
}

const program = fileURLToPath(new URL('player.ts', import.meta.url))

class Player {
  readonly #child: ChildProcess
  readonly #ended: Promise<undefined>

  constructor(folder: string) {
    this.#child = fork(program, [folder], { execArgv: ['-C', '@tapetree/source', '--max-semi-space-size=1'] })
    this.#ended = once(this.#child, 'exit').then(() => undefined)
  }

  async play(seed: number, isDirect: boolean): Promise<PlayedHistory> {
    const played = once(this.#child, 'message') as Promise<[PlayedHistory]>
    this.#child.send({ seed, isDirect })
    const result = await Promise.race([played, this.#ended])
    if (!result) throw new Error(`The process that played history ${seed} has ended.`)
    return result[0]
  }

  async end(): Promise<void> {
    if (this.#child.connected) this.#child.disconnect()
    await this.#ended
  }
}
