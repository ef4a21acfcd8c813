// Plays the histories whose seeds it is sent, one after the other. Run by `players.ts`.
import { join } from 'node:path'
import { playHistory, type PlayedHistory } from './history.ts'
import { randomOf } from './mutate.ts'
import { Shells } from './shells.ts'
import { Templates, workspaceKinds } from './workspaces.ts'

const [folder = ''] = process.argv.slice(2)
const templates = Templates.at(join(folder, 'templates'))
const shells = new Shells(join(folder, `shells-${process.pid}`))
/** In every so many-th history, git is started as the product does it. So it is if a single one is played. */
const directEvery = 10

process.on('message', ({ seed, isDirect }: { seed: number; isDirect: boolean }) => {
  const work = isDirect || seed % directEvery === 0 ? play(seed) : shells.during(() => play(seed))
  void work.then((played) => process.send?.(played))
})
process.on('disconnect', () => shells.end())

function play(seed: number): Promise<PlayedHistory> {
  const random = randomOf(seed)
  const kind = workspaceKinds[Math.floor(random() * workspaceKinds.length)] ?? 'git'
  return playHistory({ kind, folder: join(folder, String(seed)), templates, random })
}
