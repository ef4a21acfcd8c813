import type { LoadedSettings, ProjectTrust } from '@tapetree/agent/settings'
import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Io } from '../../command-line/io.ts'
import { placesOf } from '../../host/places.ts'
import type { ChatLook } from '../../tui/chat-options.ts'

/** Remembers that the last chat started without questions, so that the next one can draw its screen first. */
export interface Start {
  terminal: Omit<ChatLook, 'color'>
}

interface Mark extends Start {
  stamp: number
  /** Projects with a theme of their own. */
  themed: string[]
  /** The one among them that the theme is from. */
  project?: string
}

const fileName = 'chat-start.json'

/** Undefined if there may be questions: this is the first chat, settings or keys have changed, or a folder needs trust. */
export async function readStart(io: Io): Promise<Start | undefined> {
  try {
    const mark = JSON.parse(await readFile(join(placesOf(io).state, fileName), 'utf8')) as Mark
    const isTheSame =
      mark.stamp === (await stampOf(io)) && hasTheme(mark, io.cwd) && !(await mayHaveToBeTrusted(io.cwd))
    return isTheSame ? { terminal: mark.terminal } : undefined
  } catch {
    return undefined // missing or unreadable
  }
}

/** Called when a chat has started. Remembers the start only if it had no problems and no questions. */
export async function rememberStart(
  io: Io,
  { settings, trust }: { settings: LoadedSettings; trust: ProjectTrust },
): Promise<void> {
  if (settings.problems.length > 0 || trust.state !== 'nothing-to-trust') return
  const { state } = placesOf(io)
  const { projects } = settings.values
  const themed = Object.keys(projects).filter((root) => projects[root]?.theme !== undefined)
  const { root } = trust.project
  const mark: Mark = {
    ...{ stamp: await stampOf(io), terminal: lookIn(settings), themed },
    ...(themed.includes(root) && { project: root }),
  }
  try {
    await mkdir(state, { recursive: true, mode: 0o700 })
    await writeFile(join(state, fileName), `${JSON.stringify(mark)}\n`, { mode: 0o600 })
  } catch {
    // Only the next start is a little slower.
  }
}

/** The appearance in the settings. A theme that nobody has chosen follows the terminal. */
export function lookIn({ values, origins }: LoadedSettings): Omit<ChatLook, 'color'> {
  return { ...values.terminal, detectsTheme: origins.get('terminal.theme')?.layer === 'built-in' }
}

/** Whether the theme of the mark is that of this folder. */
function hasTheme({ themed, project }: Mark, cwd: string): boolean {
  const isIn = (root: string): boolean => cwd === root || cwd.startsWith(root.endsWith('/') ? root : `${root}/`)
  return themed.findLast((root) => isIn(root)) === project
}

export async function forgetStart(io: Io): Promise<void> {
  await rm(join(placesOf(io).state, fileName), { force: true })
}

/** Hashes everything that decides whether a model is usable: the user's files, and the environment variables that we or providers read. */
async function stampOf(io: Io): Promise<number> {
  const { config } = placesOf(io)
  const names = ['settings.json', 'settings.yaml', 'settings.yml', 'credentials.json']
  const files = await Promise.all(names.map((name) => stat(join(config, name)).catch(() => undefined)))
  const variables = Object.entries(io.env)
    .filter(([name]) => name.startsWith('TAPETREE_') || /KEY|TOKEN/.test(name))
    .sort(([left], [right]) => (left < right ? -1 : 1))
  const seen = [files.map((file) => file && [file.mtimeMs, file.size]), variables]
  return fingerprintOf(JSON.stringify(seen))
}

/** FNV-1a: does not reveal keys, and needs no import. */
function fingerprintOf(text: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  return hash >>> 0
}

/** Whether a repository around this folder may have settings. */
async function mayHaveToBeTrusted(cwd: string): Promise<boolean> {
  for (let folder = cwd; ; folder = dirname(folder)) {
    for (const name of ['.tapetree', '.agents']) {
      if (await stat(join(folder, name)).catch(() => undefined)) return true
    }
    if (folder === dirname(folder)) return false
  }
}
