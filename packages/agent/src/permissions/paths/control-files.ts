import type { PathPattern } from './path-pattern.ts'
import { PlaceList } from './place-list.ts'

/**
 * Files that make other programs run something: whoever writes them acts later and elsewhere. Writing one is asked for in every
 * mode, whatever the rules allow, and also where the file does not exist yet.
 */
const controlPlaces = new PlaceList(
  [
    // Git runs hooks, filters, pagers and aliases from here.
    '**/.git',
    '**/.gitconfig',
    '**/.gitmodules',
    '**/.config/git',
    '**/.husky',
    // Our own settings, and those of other agents and editors, which start servers and tasks.
    '**/.tapetree',
    '**/.mcp.json',
    '**/.claude',
    '**/.codex',
    '**/.cursor',
    '**/.gemini',
    '**/.vscode',
    '**/.idea',
    '**/.devcontainer',
    // They run with the secrets of the repository when somebody pushes.
    '**/.github/workflows',
    '**/.gitlab-ci.yml',
    '**/.circleci',
    // Package managers take their registry, their shell and their hooks from here.
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
    // What logs in, starts at boot or runs by the clock.
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
