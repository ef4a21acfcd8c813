import { many, meets, meetsBelow, parsePathPattern, type PathPattern, type Token } from './path-pattern.ts'

/**
 * Files whose content is a secret: they are never read without asking, by a tool or by a command. The list names places and
 * not contents; what stands in other files is the redactor's business.
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
  '/dev/mem',
  '/dev/kmem',
  '/dev/sd*',
  '/dev/nvme*',
  '/dev/vd*',
  '/dev/dm-*',
].map(parsePathPattern)

/** Names that mean a secret wherever they are. A wildcard must spell them out (`*.pem`): `*` alone is no wish for keys. */
const secretNames = [
  'id_rsa*',
  'id_dsa*',
  'id_ecdsa*',
  'id_ed25519*',
  '*.pem',
  '*.key',
  '*.p12',
  '*.pfx',
  '*.jks',
  '*.keystore',
  '*.kdbx',
  '*.ovpn',
  'credentials',
  'credentials.json',
  'secrets.json',
  'secrets.y*ml',
  'secrets.toml',
  'service-account*.json',
].map((name) => parsePathPattern(`**/${name}`))

const harmless = [
  '**/.env.example',
  '**/.env.sample',
  '**/.env.template',
  '**/.env.dist',
  '**/.env.defaults',
  '**/*.pub',
  '**/.ssh/known_hosts',
].map(parsePathPattern)

/** Whether a path, or one that a pattern may mean, is or lies in a place of secrets. */
export function mayBeSecret(pattern: PathPattern): boolean {
  if (harmless.some((each) => isSpelledOut(pattern, each))) return false
  const isHidden = secretPlaces.some((place) => meetsBelow(pattern, place, { ignoresCase: true }))
  return isHidden || secretNames.some((name) => isSpelledOut(pattern, name))
}

/**
 * Whether a pattern that some program lists files by asks for secrets. A wildcard alone does not, though it may find one: what a
 * listing finds in an ordinary folder is taken for ordinary.
 */
export function mayListSecrets(glob: string): boolean {
  const plain = glob.replace(/[[{][^\]}]*[\]}]?/g, '*')
  const pattern = parsePathPattern(plain).map((component) =>
    component !== '**' && component.tokens.join('') === String(many) ? { ...component, skipsHidden: true } : component,
  )
  const isAskedFor = certainPlaces.some((place) => meetsBelow(pattern, place, { ignoresCase: true }))
  return isAskedFor || secretNames.some((name) => isSpelledOut(pattern, name))
}

/** `*.ts` also means `.env.ts`, and `*.yml` means `.yarnrc.yml`; nobody who looks for those wants secrets. */
const certainPlaces = secretPlaces.filter((place) => {
  const name = place.at(-1)
  return name !== undefined && name !== '**' && !name.tokens.includes(many) && name.tokens.join('') !== '.yarnrc.yml'
})

/** Whether a folder is one that holds places of secrets somewhere below it: a home folder, `/`, `/etc`, `/proc`. */
export function holdsSecrets(folder: PathPattern, home: PathPattern): boolean {
  const below: PathPattern = [...folder, '**']
  const isAbove = [home, ...homes, ...fixedPlaces].some((place) => meets(below, place, { ignoresCase: true }))
  return isAbove || dens.some((den) => meets(folder, den, { ignoresCase: true })) || mayBeSecret(folder)
}

const homes = ['/root', '/home/*', '/Users/*'].map(parsePathPattern)
const fixedPlaces = secretPlaces.filter(([first]) => first !== '**')
const dens = ['**/.config', '**/.docker', '**/.cargo', '**/.tapetree'].map(parsePathPattern)

/** Takes the wildcards of a pattern for letters: `*.pem` is spelled out, `server.*` is not. */
function isSpelledOut(pattern: PathPattern, name: PathPattern): boolean {
  const letters = pattern.map((component) =>
    component === '**' ? component : { tokens: component.tokens.map(asLetter), skipsHidden: false },
  )
  return meets(letters, name, { ignoresCase: true })
}

function asLetter(token: Token): Token {
  return typeof token === 'string' ? token : '*'
}
