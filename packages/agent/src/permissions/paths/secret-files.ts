import { many, meets, parsePathPattern, type NamePattern, type PathPattern } from './path-pattern.ts'
import { PlaceList } from './place-list.ts'

/**
 * Files that contain secrets: neither a tool nor a command reads them without a request. The list has paths, not
 * contents; the redactor handles the contents of other files.
 */
const secretPlaces = [
  '**/.ssh',
  '**/.gnupg',
  '**/.aws',
  '**/.azure',
  '**/.kube',
  '**/.config/gcloud',
  '**/.config/gh',
  '**/.config/hub',
  '**/.config/op',
  '**/.docker/config.json',
  '**/.cargo/credentials*',
  '**/.tapetree/credentials*',
  '**/.env',
  '**/.env.*',
  '**/.envrc',
  '**/.netrc',
  '**/.npmrc',
  '**/.yarnrc.yml',
  '**/.pypirc',
  '**/.pgpass',
  '**/.my.cnf',
  '**/.htpasswd',
  '**/.git-credentials',
  '**/.vault-token',
  '**/.bash_history',
  '**/.zsh_history',
  '/etc/shadow*',
  '/etc/gshadow*',
  '/etc/sudoers*',
  '/etc/ssh',
  '/etc/ssl/private',
  '/run/secrets',
  '/var/run/secrets',
  '/proc/kcore',
  '/proc/*/environ',
  '/proc/*/mem',
  '/proc/*/fd',
  '/proc/*/root',
  '/proc/*/cwd',
  '/proc/*/task',
  // Disks, memory and devices on which opening has side effects.
  '/dev/*',
]

/** Names of secrets in any folder. A pattern must spell them out (`*.pem`): `*` alone does not ask for keys. */
const secretNameGlobs = [
  '**/id_rsa*',
  '**/id_dsa*',
  '**/id_ecdsa*',
  '**/id_ed25519*',
  '**/*.pem',
  '**/*.key',
  '**/*.p12',
  '**/*.pfx',
  '**/*.jks',
  '**/*.keystore',
  '**/*.kdbx',
  '**/*.ovpn',
  '**/credentials',
  '**/credentials.json',
  '**/secrets.json',
  '**/secrets.y*ml',
  '**/secrets.toml',
  '**/service-account*.json',
]
const secretNames = new PlaceList(secretNameGlobs)
const secretNamesAlone = new PlaceList(secretNameGlobs.map((glob) => glob.replace('**', '')))

const harmless = new PlaceList([
  '**/.env.example',
  '**/.env.sample',
  '**/.env.template',
  '**/.env.dist',
  '**/.env.defaults',
  '**/*.pub',
  '**/.ssh/known_hosts',
  '/dev/null',
  '/dev/zero',
  '/dev/random',
  '/dev/urandom',
  '/dev/tty',
  '/dev/stdin',
  '/dev/stdout',
  '/dev/stderr',
  '/dev/fd/*',
])

/** `*.ts` also matches `.env.ts`, and `*.yml` matches `.yarnrc.yml`, but such a pattern does not ask for secrets. */
const certainPlaces = secretPlaces.filter((place) => !/\*[^/]*$/.test(place) && !place.endsWith('.yarnrc.yml'))

const secrets = new PlaceList(withBelow(secretPlaces))
const certainSecrets = new PlaceList(withBelow(certainPlaces))
const fixedSecrets = new PlaceList([
  ...secretPlaces.filter((place) => !place.startsWith('**')),
  '/root',
  '/home/*',
  '/Users/*',
])
const dens = new PlaceList(['**/.config', '**/.docker', '**/.cargo', '**/.tapetree'])

function withBelow(places: readonly string[]): string[] {
  return places.flatMap((place) => [place, `${place}/**`])
}

/** Whether a path, or a path that a pattern may match, is a secret or lies in a folder of secrets. */
export function mayBeSecret(pattern: PathPattern): boolean {
  const letters = spelledOut(pattern)
  return !harmless.has(letters) && (secrets.has(pattern) || secretNames.has(letters))
}

/** Like `mayBeSecret` for one absolute path without wildcards; fast for many paths. */
export function isSecretPath(path: string): boolean {
  // Most paths have nothing in common with any of the patterns.
  const isOrdinary = !/\/\.|^\/(?:etc|run|var|proc|dev)\//.test(path)
  if (isOrdinary && !secretNamesAlone.hasPath(path.slice(path.lastIndexOf('/')))) return false
  return !harmless.hasPath(path) && (secrets.hasPath(path) || secretNames.hasPath(path))
}

/**
 * Whether a pattern by which a program lists files asks for secrets. A wildcard alone does not, though it may find one:
 * files that a listing finds in an ordinary folder count as ordinary.
 */
export function mayListSecrets(glob: string): boolean {
  const pattern = parsePathPattern(glob.replace(/[[{][^\]}]*[\]}]?/g, '*')).map((component) =>
    component === '**' || component.tokens.every((token) => token === many) ? anyName : component,
  )
  return certainSecrets.has(pattern) || secretNames.has(spelledOut(pattern))
}

const anyName: NamePattern = { tokens: [many], skipsHidden: true }

/** Whether a folder contains secrets somewhere below it: a home folder, `/`, `/etc`, `/proc`. */
export function holdsSecrets(folder: PathPattern, home: PathPattern): boolean {
  const isAboveHome = folder.length <= home.length && meets(folder, home.slice(0, folder.length))
  return isAboveHome || fixedSecrets.someBelow(folder) || dens.has(folder) || mayBeSecret(folder)
}

/** Treats the wildcards of a pattern as letters: `*.pem` is spelled out, `server.*` is not. */
function spelledOut(pattern: PathPattern): PathPattern {
  return pattern.map((component) =>
    component === '**'
      ? component
      : { tokens: component.tokens.map((token) => (typeof token === 'string' ? token : '*')), skipsHidden: false },
  )
}
