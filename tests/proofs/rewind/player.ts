// Plays the histories whose seeds it is sent, one after the other. Run by `players.ts`.
import { join } from 'node:path'
import { playHistory } from './history.ts'
import { randomOf } from './mutate.ts'
import { Templates, workspaceKinds } from './workspaces.ts'

const [folder = ''] = process.argv.slice(2)
const templates = Templates.at(join(folder, 'templates'))

process.on('message', (seed: number) => void play(seed))

async function play(seed: number): Promise<void> {
  const random = randomOf(seed)
  const kind = workspaceKinds[Math.floor(random() * workspaceKinds.length)] ?? 'git'
  process.send?.(await playHistory({ kind, folder: join(folder, String(seed)), templates, random }))
}
