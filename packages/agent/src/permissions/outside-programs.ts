import { textOf, type Word } from './shell/words/word.ts'

/** Why a program cannot do its work in the sandbox. */
type Need =
  /** It uses keys or sign-ins of the user, which no sandbox shows. */
  | 'credentials'
  /** It talks to a server of the machine, such as the container engine or the service manager. */
  | 'service'
  /** It changes the system. */
  | 'system'
  /** It uses the screen or other programs of the user. */
  | 'desktop'
  /** It changes what the sandbox protects, such as the settings of a repository. */
  | 'protected'

/** The programs that must leave the sandbox: all of their calls, or those with one of these first words. */
const outsidePrograms: Readonly<Record<string, Need | { need: Need; commands: readonly string[] }[]>> = {
  git: [
    { need: 'credentials', commands: ['push', 'pull', 'fetch', 'ls-remote', 'send-email', 'credential'] },
    { need: 'protected', commands: ['config', 'remote', 'submodule', 'worktree', 'maintenance', 'lfs'] },
  ],
  npm: publishing(),
  pnpm: publishing(),
  yarn: [...publishing(), { need: 'credentials', commands: ['npm'] }],
  bun: publishing(),
  cargo: publishing(),
  gem: [{ need: 'credentials', commands: ['push', 'signin'] }],
  poetry: publishing(),
  uv: publishing(),
  twine: 'credentials',
  ssh: 'credentials',
  scp: 'credentials',
  sftp: 'credentials',
  'ssh-add': 'credentials',
  'ssh-copy-id': 'credentials',
  gpg: 'credentials',
  gpg2: 'credentials',
  pass: 'credentials',
  op: 'credentials',
  vault: 'credentials',
  gh: 'credentials',
  glab: 'credentials',
  aws: 'credentials',
  az: 'credentials',
  gcloud: 'credentials',
  gsutil: 'credentials',
  doctl: 'credentials',
  fly: 'credentials',
  flyctl: 'credentials',
  heroku: 'credentials',
  vercel: 'credentials',
  netlify: 'credentials',
  wrangler: 'credentials',
  firebase: 'credentials',
  terraform: 'credentials',
  tofu: 'credentials',
  pulumi: 'credentials',
  kubectl: 'credentials',
  helm: 'credentials',
  docker: 'service',
  'docker-compose': 'service',
  podman: 'service',
  buildah: 'service',
  nerdctl: 'service',
  psql: 'service',
  pg_dump: 'service',
  mysql: 'service',
  mysqldump: 'service',
  'redis-cli': 'service',
  mongosh: 'service',
  systemctl: 'service',
  journalctl: 'service',
  loginctl: 'service',
  service: 'service',
  launchctl: 'service',
  crontab: 'service',
  at: 'service',
  tmux: 'service',
  screen: 'service',
  adb: 'service',
  sudo: 'system',
  doas: 'system',
  su: 'system',
  pkexec: 'system',
  apt: 'system',
  'apt-get': 'system',
  dpkg: 'system',
  dnf: 'system',
  yum: 'system',
  pacman: 'system',
  apk: 'system',
  zypper: 'system',
  snap: 'system',
  flatpak: 'system',
  brew: 'system',
  mount: 'system',
  umount: 'system',
  modprobe: 'system',
  sysctl: 'system',
  iptables: 'system',
  nft: 'system',
  reboot: 'system',
  shutdown: 'system',
  open: 'desktop',
  'xdg-open': 'desktop',
  code: 'desktop',
  pbcopy: 'desktop',
  pbpaste: 'desktop',
  xclip: 'desktop',
  'notify-send': 'desktop',
}

function publishing(): { need: Need; commands: readonly string[] }[] {
  return [
    {
      need: 'credentials',
      commands: ['publish', 'login', 'logout', 'adduser', 'whoami', 'owner', 'token', 'unpublish', 'deprecate', 'yank'],
    },
  ]
}

const reasons: Readonly<Record<Need, string>> = {
  credentials: 'uses your keys or sign-ins, which commands in the sandbox cannot read',
  service: 'uses a service of this machine, which commands in the sandbox cannot reach',
  system: 'changes the system',
  desktop: 'uses other programs of yours',
  protected: 'changes what the sandbox protects',
}

/** Why a command must run outside of the sandbox: a sentence without its full stop. Undefined if it need not. */
export function whyOutside([program, ...rest]: readonly Word[]): string | undefined {
  const name = program && textOf(program)?.replace(/^.*\//, '')
  if (name === undefined || !Object.hasOwn(outsidePrograms, name)) return undefined
  const entry = outsidePrograms[name]
  if (typeof entry === 'string') return `\`${name}\` ${reasons[entry]}`
  const command = firstCommand(rest.map(textOf))
  const found = entry?.find(({ commands }) => command !== undefined && commands.includes(command))
  return found && `\`${name} ${command}\` ${reasons[found.need]}`
}

/** Options of git with a value of their own. */
const optionsWithValue = new Set(['-C', '-c', '--git-dir', '--work-tree', '--namespace', '--prefix', '--cwd', '--dir'])

/** The first word that is neither an option nor the value of one. */
function firstCommand(words: readonly (string | undefined)[]): string | undefined {
  for (let index = 0; index < words.length; index++) {
    const word = words[index]
    if (word === undefined || !word.startsWith('-')) return word
    if (optionsWithValue.has(word)) index += 1
  }
  return undefined
}
