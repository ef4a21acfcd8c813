import { execFile } from 'node:child_process'
import { appendFile, chmod, mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { promisify } from 'node:util'
import type {
  HostilePlace,
  HostileRepository,
} from '../../../packages/agent/src/settings/testing/hostile-repositories.ts'

/** A repository that makes git run something when somebody only looks at it. */
export type GitTrap = HostileRepository & Required<Pick<HostileRepository, 'folder'>>

/** Where git finds the hostile settings. */
const places = {
  'the repository itself': async ({ root }) => {
    await makeRepository(root, join(root, '.git'))
    return { gitFolder: join(root, '.git'), config: join(root, '.git/config') }
  },
  'a repository in the repository': async ({ root }) => {
    await makeRepository(root, join(root, '.git'))
    await makeRepository(join(root, 'sub'), join(root, 'sub/.git'))
    return { gitFolder: join(root, 'sub/.git'), config: join(root, 'sub/.git/config') }
  },
  'a .git file that leads to a folder of the repository': async ({ root }) => {
    await makeRepository(root, join(root, '.git'))
    await makeRepository(join(root, 'sub'), join(root, 'data'))
    return { gitFolder: join(root, 'data'), config: join(root, 'data/config') }
  },
  'a .git file that leads out of the repository': async ({ root, outside }) => {
    await makeRepository(root, join(outside, 'data'))
    return { gitFolder: join(outside, 'data'), config: join(outside, 'data/config') }
  },
  'a folder that is a git folder': async ({ root }) => {
    await makeRepository(root, join(root, '.git'))
    await makeRepository(join(root, 'sub/wt'), join(root, 'sub/git'))
    await unfold(join(root, 'sub'))
    await appendFile(join(root, 'sub/config'), '[core]\n\tbare = false\n\tworktree = wt\n')
    return { gitFolder: join(root, 'sub'), config: join(root, 'sub/config') }
  },
  'a folder that is half of a git folder, with commondir': async ({ root }) => {
    await makeRepository(root, join(root, '.git'))
    await makeRepository(join(root, 'sub/wt'), join(root, 'sub/git'))
    await unfold(join(root, 'sub'))
    await mkdir(join(root, 'sub/x'))
    for (const name of ['objects', 'refs', 'info']) await rename(join(root, 'sub', name), join(root, 'sub/x', name))
    await rm(join(root, 'sub/config'))
    await writeFile(join(root, 'sub/commondir'), 'x\n')
    await writeFile(join(root, 'sub/config.worktree'), '[core]\n\tbare = false\n\tworktree = wt\n')
    const config = join(root, 'sub/x/config')
    await writeFile(config, '[core]\n\trepositoryformatversion = 0\n[extensions]\n\tworktreeConfig = true\n')
    return { gitFolder: join(root, 'sub'), config }
  },
  'a repository above an empty .git': async ({ root }) => {
    await makeRepository(root, join(root, '.git'))
    await mkdir(join(root, 'app/.git'), { recursive: true })
    return { gitFolder: join(root, '.git'), config: join(root, '.git/config') }
  },
  'a repository above a .git without a HEAD': async ({ root }) => {
    await makeRepository(root, join(root, '.git'))
    for (const name of ['objects', 'refs']) await mkdir(join(root, 'app/.git', name), { recursive: true })
    await writeFile(join(root, 'app/.git/config'), '[core]\n\tbare = false\n')
    return { gitFolder: join(root, '.git'), config: join(root, '.git/config') }
  },
  'a repository that the index of the outer one links to': async ({ root }) => {
    await makeRepository(root, join(root, '.git'))
    await makeRepository(join(root, 'sub'), join(root, 'sub/.git'))
    await git(root, 'add', 'sub')
    return { gitFolder: join(root, 'sub/.git'), config: join(root, 'sub/.git/config') }
  },
  'a submodule whose git folder is kept in that of the outer one': async ({ root }) => {
    await makeRepository(root, join(root, '.git'))
    const gitFolder = join(root, '.git/modules/sub')
    await mkdir(dirname(gitFolder))
    await makeRepository(join(root, 'sub'), gitFolder)
    await git(root, 'add', 'sub')
    return { gitFolder, config: join(gitFolder, 'config') }
  },
  'a linked working folder of a repository elsewhere': async ({ root, outside }) => {
    await makeRepository(join(outside, 'main'), join(outside, 'main/.git'))
    await rm(root, { recursive: true })
    await git(join(outside, 'main'), 'worktree', 'add', '-q', '-b', 'other', root)
    await writeFile(join(root, 'f.txt'), 'dirty\n')
    const shared = join(outside, 'main/.git')
    return { gitFolder: join(shared, 'worktrees', 'repository'), config: join(shared, 'config') }
  },
  'a link to a repository elsewhere': async ({ root, outside }) => {
    await makeRepository(root, join(root, '.git'))
    await makeRepository(join(outside, 'repo'), join(outside, 'repo/.git'))
    await symlink(join(outside, 'repo'), join(root, 'sub'))
    return { gitFolder: join(outside, 'repo/.git'), config: join(outside, 'repo/.git/config') }
  },
} satisfies Record<string, (place: HostilePlace) => Promise<Target>>

interface Target {
  /** With HEAD and the index in it. */
  gitFolder: string
  config: string
}

type Carrier = (target: Target, settings: string) => Promise<void>

/** The file that has the hostile settings in it. */
const carriers = {
  config: ({ config }, settings) => appendFile(config, settings),
  'config.worktree': async ({ config, gitFolder }, settings) => {
    await appendFile(config, '[core]\n\trepositoryformatversion = 1\n[extensions]\n\tworktreeConfig = true\n')
    await appendFile(join(gitFolder, 'config.worktree'), settings)
  },
  'an included file': async ({ config }, settings) => {
    await writeFile(`${config}.more`, settings)
    await appendFile(config, '[include]\n\tpath = config.more\n')
  },
  'a file that is included for a branch': async ({ config }, settings) => {
    await writeFile(`${config}.more`, settings)
    await appendFile(config, '[includeIf "onbranch:**"]\n\tpath = config.more\n')
  },
} satisfies Record<string, Carrier>

/** What makes git run the command. */
const triggers = {
  'a filter': (strike) => `[filter "e"]\n\tclean = "${strike}; cat"\n`,
  'a filter process': (strike) => `[filter "e"]\n\tprocess = "${strike}"\n`,
  'a watcher of files': (strike) => `[core]\n\tfsmonitor = "${strike}"\n`,
  'an external diff': (strike) => `[diff]\n\texternal = "${strike}; true"\n`,
  'a diff driver': (strike) => `[diff "e"]\n\tcommand = "${strike}; true"\n`,
  'a text conversion': (strike) => `[diff "e"]\n\ttextconv = "${strike}; cat"\n`,
  'a folder of hooks': (_, hooks) => `[core]\n\thooksPath = ${hooks}\n`,
} satisfies Record<string, (strike: string, hooks: string) => string>

type PlaceName = keyof typeof places
type CarrierName = keyof typeof carriers
type TriggerName = keyof typeof triggers

const placeNames = Object.keys(places) as PlaceName[]
const carrierNames = Object.keys(carriers) as CarrierName[]
const triggerNames = Object.keys(triggers) as TriggerName[]

/** Where somebody stands when git finds them, if not at the root. */
const folders: Partial<Record<PlaceName, string>> = {
  'a repository in the repository': 'sub',
  'a .git file that leads to a folder of the repository': 'sub',
  'a folder that is a git folder': 'sub',
  'a folder that is half of a git folder, with commondir': 'sub',
  'a repository above an empty .git': 'app',
  'a repository above a .git without a HEAD': 'app',
  'a link to a repository elsewhere': 'sub',
}

/** Every place, every carrier and every trigger at least once, and all triggers where nothing but the files of a commit is needed. */
export const gitTraps: readonly GitTrap[] = [
  ...placeNames.map((place) => trap(place, 'config', 'a filter')),
  ...placeNames.map((place) => trap(place, 'config', 'a watcher of files')),
  ...carrierNames.slice(1).map((carrier) => trap('the repository itself', carrier, 'a watcher of files')),
  ...triggerNames
    .slice(2)
    .map((trigger) => trap('a folder that is half of a git folder, with commondir', 'config', trigger)),
]

export function randomTrap(random: () => number): GitTrap {
  const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)] as Item
  return trap(pick(placeNames), pick(carrierNames), pick(triggerNames))
}

function trap(place: PlaceName, carrier: CarrierName, trigger: TriggerName): GitTrap {
  return {
    name: `${trigger} in ${carrier}, in ${place}`,
    folder: folders[place] ?? '.',
    build: async (at) => {
      const target = await places[place](at)
      const hooks = join(at.outside, 'hooks')
      await mkdir(hooks, { recursive: true })
      await writeFile(join(hooks, 'post-index-change'), `#!/bin/sh\ntouch '${at.canary}'\n`)
      await chmod(join(hooks, 'post-index-change'), 0o755)
      await carriers[carrier](target, triggers[trigger](`touch '${at.canary}'`, hooks))
    },
  }
}

/** A repository with one commit, and a file that differs from it, so that git has to look at its content. */
async function makeRepository(workFolder: string, gitFolder: string): Promise<void> {
  await mkdir(workFolder, { recursive: true })
  const separate =
    gitFolder === join(workFolder, '.git') ? [] : [`--separate-git-dir=${relative(workFolder, gitFolder)}`]
  await git(workFolder, 'init', '-q', ...separate)
  await writeFile(join(workFolder, '.gitattributes'), '* filter=e diff=e\n')
  await writeFile(join(workFolder, 'f.txt'), 'clean\n')
  await git(workFolder, 'add', '.gitattributes', 'f.txt')
  await git(workFolder, 'commit', '-q', '-m', 'first')
  await writeFile(join(workFolder, 'f.txt'), 'dirty\n')
}

/** Makes the folder itself the git folder that lies in it. */
async function unfold(folder: string): Promise<void> {
  for (const name of ['HEAD', 'config', 'index', 'objects', 'refs', 'info']) {
    await rename(join(folder, 'git', name), join(folder, name))
  }
  await rm(join(folder, 'git'), { recursive: true })
  await rm(join(folder, 'wt/.git'))
}

async function git(cwd: string, ...words: string[]): Promise<void> {
  const identity = ['-c', 'user.name=Test', '-c', 'user.email=test@example.org', '-c', 'init.defaultBranch=main']
  const env = { PATH: process.env['PATH'], HOME: '/nowhere', GIT_CONFIG_NOSYSTEM: '1' }
  await promisify(execFile)('git', [...identity, '-c', 'advice.addEmbeddedRepo=false', ...words], { cwd, env })
}
