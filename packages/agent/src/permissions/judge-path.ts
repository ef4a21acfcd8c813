import { exactPath, type PathPattern } from './paths/path-pattern.ts'
import { staysWithin, type PathUse } from './paths/path-use.ts'
import { holdsSecrets, mayBeSecret } from './paths/secret-files.ts'
import { allowed, editableFolders, isBoxed, type Judgement, type Policy } from './policy.ts'
import { effectOf, matchPath, type Rule } from './rules.ts'
import { PlaceList } from './paths/place-list.ts'

/** Reading is allowed except for secrets, unless rules say otherwise. */
export function judgeRead(use: PathUse, policy: Policy): Judgement {
  const { shown } = use
  const effect = effectOf(policy.rules, (rule) => matchPath(rule, { ...use, type: 'read' }, policy))
  if (effect === 'deny') return { effect, reason: `A rule forbids reading ${shown}.` }
  if (effect === 'ask') return { effect, reason: `A rule requires permission to read ${shown}.` }
  if (effect === 'allow' || !isSecret(use, policy)) return allowed
  const reason = use.isRecursive ? `${shown} contains files with secrets.` : `${shown} may contain a secret.`
  return { effect: 'ask', reason, ...grantFor('read', use) }
}

export function judgeWrite(use: PathUse, policy: Policy): Judgement {
  const { shown } = use
  const effect = effectOf(policy.rules, (rule) => matchPath(rule, { ...use, type: 'write' }, policy))
  if (effect === 'deny') return { effect, reason: `A rule forbids writing ${shown}.` }
  if (policy.mode === 'plan') return { effect: 'deny', reason: `Plan mode is on: ${shown} is not written.` }
  if (mayControl(use)) return { effect: 'ask', reason: `${shown} controls what other programs run.` }
  if (effect === 'ask') return { effect, reason: `A rule requires permission to write ${shown}.` }
  if (effect === 'allow' || policy.mode === 'auto') return allowed
  const home = editableFolders(policy).find((folder) => staysWithin(use, folder))
  if (home && (policy.mode === 'accept-edits' || isBoxed(policy))) return allowed
  // Within the working folder the grant covers edits, elsewhere this one file.
  const grant = home
    ? { grant: [{ effect: 'allow', type: 'write', match: pathOf(home) } satisfies Rule] }
    : grantFor('write', use)
  return { effect: 'ask', reason: `It writes ${shown}.`, ...grant }
}

export function mayControl({ written, real }: PathUse): boolean {
  return isControlFile(written) || isControlFile(real)
}

/** Whether it may read a secret, whatever the rules say. */
export function isSecret({ written, real, isRecursive }: PathUse, { home }: Policy): boolean {
  if (mayBeSecret(written) || mayBeSecret(real)) return true
  return isRecursive && (holdsSecrets(written, exactPath(home)) || holdsSecrets(real, exactPath(home)))
}

/** Only one exact file can be granted. */
function grantFor(type: 'read' | 'write', use: PathUse): { grant?: Rule[] } {
  const path = pathOf(use.real)
  return staysWithin(use, use.real) && !/[*?]/.test(path) ? { grant: [{ effect: 'allow', type, match: path }] } : {}
}

function pathOf(pattern: PathUse['real']): string {
  return `/${pattern.map((component) => (component === '**' ? component : component.tokens.join(''))).join('/')}`
}

/**
 * Control files make other programs run something, so a write to one acts later and elsewhere. Writing one requires a
 * request in every mode, whatever the rules allow, and also if the file does not exist yet.
 */
const controlPlaces = new PlaceList(
  [
    // Git runs hooks, filters, pagers and aliases from here.
    '**/.git',
    '**/.gitconfig',
    '**/.gitmodules',
    '**/.config/git',
    '**/.husky',
    // Our settings, and those of other agents and editors, which start servers and tasks.
    '**/.tapetree',
    '**/.mcp.json',
    '**/.claude',
    '**/.codex',
    '**/.cursor',
    '**/.gemini',
    '**/.vscode',
    '**/.idea',
    '**/.devcontainer',
    // CI runs them with the secrets of the repository on each push.
    '**/.github/workflows',
    '**/.gitlab-ci.yml',
    '**/.circleci',
    // Package managers read their registry, shell and hooks from here.
    '**/.npmrc',
    '**/.yarnrc',
    '**/.yarnrc.yml',
    '**/.pnpmfile.cjs',
    '**/.pypirc',
    '**/.cargo/config*',
    // Shells read these when they start, direnv when a folder is entered.
    '**/.envrc',
    '**/.profile',
    '**/.bashrc',
    '**/.bash_profile',
    '**/.bash_login',
    '**/.bash_logout',
    '**/.bash_aliases',
    '**/.zshrc',
    '**/.zshenv',
    '**/.zprofile',
    '**/.zlogin',
    '**/.kshrc',
    '**/.inputrc',
    '**/.config/fish',
    // Login, boot and scheduled tasks.
    '**/.ssh',
    '**/.config/autostart',
    '**/.config/systemd',
    '**/Library/LaunchAgents',
    '**/Library/LaunchDaemons',
    '/var/spool/cron',
    '/etc',
  ].flatMap((place) => [place, `${place}/**`]),
)

export function isControlFile(pattern: PathPattern): boolean {
  return controlPlaces.has(pattern)
}
