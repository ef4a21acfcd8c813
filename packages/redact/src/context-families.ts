import { charactersOf, type NameShape, type SecretFamily } from './family.ts'
import { isBasicCredentials, isPlaceholder, looksLikePassword, looksRandom } from './value-shape.ts'

// Between a name and its value: a closing quote, a type, an assignment, an opening quote. Quotes may be escaped.
const quote = String.raw`\\{0,3}["'\x60]`
const space = String.raw`[ \t]{0,16}`
const assigns = String.raw`(?:${quote})?\]?${space}(?:: ?&?[A-Za-z]{3,6}${space}(?==))?(?:=>|:=|={1,3}|[:,>])${space}`
const opened = String.raw`(?:${quote})?`
const ends = String.raw`(?=[\s"'\x60\\,;&)}\]<]|$)`

// Words before the value of a header, as in `Token token=value`. What follows a scheme is a value, even if it is all letters.
const word = String.raw`[A-Za-z-]{2,16}[ =]{1,2}`
const notAfterScheme = String.raw`(?<!\b[Bb](?:asic|ASIC|earer|EARER)[ =]{1,2})`

const passwordNames = anyCase(['pass', 'pwd'])
const secretNames = anyCase([
  ...['secret', 'token', 'credential', 'api key', 'access key', 'private key', 'encryption key', 'signing key'],
  ...['master key', 'auth key', 'service key', 'account key', 'license key', 'subscription key', 'app key', 'auth'],
])
const keyNames = ['_KEY', '_PAT', '_SALT']

let shapes = 0
/** All objects have all properties, in this order. */
const newShape = (shape: Partial<NameShape>): NameShape => ({
  index: shapes++,
  hasDots: shape.hasDots ?? false,
  maxLength: shape.maxLength ?? 32,
  dependsOnAnchor: shape.dependsOnAnchor ?? false,
  joint: shape.joint ?? 'assignment',
  isDirect: shape.isDirect ?? false,
  isToken: shape.isToken ?? false,
  isQuoted: shape.isQuoted ?? false,
  isAfterQuoted: shape.isAfterQuoted ?? false,
  minValueLength: shape.minValueLength ?? 4,
  maxValueLength: shape.maxValueLength,
  notAfterValue: shape.notAfterValue,
  isPassword: shape.isPassword ?? false,
})

/** Secrets that are recognized by the text before them. */
export const contextFamilies: readonly SecretFamily[] = [
  {
    name: 'url-password',
    anchors: ['://'],
    pattern: /(:\/\/[^\s:@/"'\x60<>[\]()\\]{0,100}:)([^\s@/"'\x60<>()\\]{1,256})(?=@)/,
    check: (secret) =>
      !/^(?:\$|\{|%[sd]|<|\*+$|x+$|password$|pass$|pwd$)/i.test(secret) && !secret.includes('[redacted'),
  },
  {
    name: 'url-token',
    anchors: ['://'],
    pattern: /(:\/\/)([A-Za-z0-9_-]{20,256})(?=@)/,
    check: looksRandom,
  },
  {
    name: 'bearer-token',
    anchors: anyCase(['bearer']),
    pattern: /([Bb](?:earer|EARER)[\s:]{1,3}(?:\\{0,3}["'])?)([A-Za-z0-9._~+/-]{16,4096}={0,2})(?![[A-Za-z0-9._~+/(-])/,
    startsWord: true,
    check: looksRandom,
  },
  {
    name: 'basic-credentials',
    anchors: anyCase(['basic']),
    pattern: /([Bb](?:asic|ASIC) {1,2})([A-Za-z0-9+/]{8,512}={0,2})(?![[A-Za-z0-9+/=])/,
    startsWord: true,
    check: isBasicCredentials,
  },
  {
    name: 'authorization-header',
    anchors: anyCase(['authorization']),
    pattern: new RegExp(
      `([Aa](?:uthorization|UTHORIZATION)(?:${quote})?${space}[:=,]${space}${opened}(?:${word}(?:${notAfterScheme}${word})?)?)([A-Za-z0-9._~+/:-]{16,4096}={0,2})${ends}`,
    ),
    maxRunBefore: { characters: charactersOf(/[A-Za-z0-9._~+/:-]/), length: 40 },
    nameShape: newShape({ minValueLength: 2, maxValueLength: 4096 }),
    check: looksRandom,
  },
  {
    name: 'command-line-password',
    anchors: ['-u ', '--user ', '--user=', 'sshpass -p'],
    pattern: /((?:-u |--user[ =])["']?[A-Za-z0-9_.@%+-]{1,64}:|sshpass -p ?["']?)([^\s"'$\x60:/<>]{6,128})/,
    check: (secret) => /[A-Za-z]/.test(secret) && looksLikePassword(secret),
  },
  {
    name: 'netrc-password',
    anchors: ['login '],
    pattern: /(login [^\s]{1,100}\s{1,8}password )([^\s]{4,256})/,
    startsWord: true,
    check: (secret) => !isPlaceholder(secret),
  },
  {
    name: 'sql-password',
    anchors: anyCase(['identified by', 'with password']),
    pattern: /([A-Za-z]{4,10} [A-Za-z]{2,8} ["'])([^\s"']{4,128})(?=["'])/,
    check: (secret) => !isPlaceholder(secret) && !secret.startsWith('$'),
  },
  ...vendorFamily(
    'aws-secret-key',
    ['secret access key', 'aws secret', 'aws secret key'],
    String.raw`[A-Za-z0-9+/]{40}(?![[A-Za-z0-9+/])`,
  ),
  ...vendorFamily('aws-session-token', ['session token', 'security token'], String.raw`[A-Za-z0-9+/]{80,4096}={0,2}`),
  ...vendorFamily('twilio-auth-token', ['twilio'], String.raw`[0-9a-f]{32}(?![[A-Za-z0-9])`),
  ...vendorFamily('mailgun-key', ['mailgun'], String.raw`[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}`),
  ...vendorFamily('mailchimp-key', ['mailchimp'], String.raw`[0-9a-f]{32}-us\d{1,2}`),
  ...vendorFamily('cloudflare-token', ['cloudflare', 'cf api'], String.raw`[A-Za-z0-9_-]{37,40}(?![[A-Za-z0-9_-])`),
  ...vendorFamily('heroku-key', ['heroku'], String.raw`[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}`),
  ...vendorFamily('snyk-token', ['snyk'], String.raw`[0-9a-f]{8}-[0-9a-f-]{27}`),
  ...vendorFamily('datadog-key', ['datadog', 'dd api', 'dd app'], String.raw`[0-9a-f]{32,40}(?![[A-Za-z0-9])`),
  ...vendorFamily('mistral-key', ['mistral'], String.raw`[A-Za-z0-9]{32}(?![[A-Za-z0-9])`),
  ...vendorFamily('cohere-key', ['cohere'], String.raw`[A-Za-z0-9]{40}(?![[A-Za-z0-9])`),
  ...vendorFamily('algolia-key', ['algolia'], String.raw`[0-9a-f]{32}(?![[A-Za-z0-9])`),
  ...vendorFamily('okta-token', ['okta'], String.raw`00[A-Za-z0-9_-]{40}(?![[A-Za-z0-9_-])`),
  ...vendorFamily('airtable-token', ['airtable'], String.raw`pat[A-Za-z0-9]{14}\.[a-f0-9]{64}`),
  ...vendorFamily('new-relic-license', ['new relic', 'newrelic'], String.raw`[a-f0-9]{36}NRAL`),
  {
    name: 'password',
    anchors: passwordNames,
    pattern: assignment(String.raw`[^\s"'\x60\\]{6,128}`, { isQuoted: true }),
    nameShape: newShape({ isQuoted: true, minValueLength: 6, isPassword: true }),
    check: looksLikePassword,
  },
  {
    name: 'password',
    anchors: passwordNames,
    // Neither an `&` that begins the next field of a query nor the slashes of a URL belong to it.
    pattern: assignment(String.raw`(?:[^\s"'\x60\\,;&(){}<>[\]$/]|/(?!/)|&(?![A-Za-z_]{1,20}=)){6,128}`, {
      isQuoted: false,
    }),
    nameShape: newShape({
      isAfterQuoted: true,
      minValueLength: 6,
      maxValueLength: 128,
      notAfterValue: charactersOf(/[({>[$]/),
      isPassword: true,
    }),
    check: (secret) => !/^[A-Za-z_]+[.=:]/.test(secret) && looksLikePassword(secret),
  },
  {
    // As in the environment, where every value counts, even a word.
    name: 'password',
    anchors: ['PASS', 'PWD'],
    pattern:
      /((?:PASS(?:WORD|WD|PHRASE)?|PWD)=["']?)([^\s"'\x60\\$<>{}(),;&[\]/.=][^\s"'\x60\\$<>{}(),;&[\]]{3,127})(?=[\s"'\\,;&]|$)/,
    nameShape: newShape({
      maxLength: 10,
      dependsOnAnchor: true,
      isDirect: true,
      maxValueLength: 128,
      notAfterValue: charactersOf(/[(){}<>[\]$\x60]/),
    }),
    check: (secret) => !isPlaceholder(secret),
  },
  {
    name: 'secret',
    anchors: [...secretNames, ...keyNames],
    pattern: assignment(String.raw`[A-Za-z0-9+/_.~%!@#$^*-]{16,4096}={0,2}`, { isQuoted: false }),
    nameShape: newShape({ isToken: true, minValueLength: 16 }),
    check: looksRandom,
  },
  {
    // `--token value`
    name: 'secret',
    anchors: [...passwordNames, ...secretNames].filter((name) => /^[a-z-]+$/.test(name)),
    pattern: new RegExp(String.raw`((?<=--[a-z-]{0,24})[a-z-]{3,24} ["']?)([^\s"'\x60\\,;&(){}<>[\]$]{8,4096})${ends}`),
    nameShape: newShape({ maxLength: 24, joint: 'space', minValueLength: 8, dependsOnAnchor: true }),
    check: (secret) =>
      secret.length <= 64 && !secret.startsWith('-')
        ? looksLikePassword(secret) || looksRandom(secret)
        : looksRandom(secret),
  },
]

function assignment(value: string, { isQuoted }: { isQuoted: boolean }): RegExp {
  // The name at the anchor already matched; which one it is no longer matters.
  const lead = String.raw`[A-Za-z0-9_-]{3,32}${assigns}`
  return isQuoted
    ? new RegExp(`(${lead}${quote})(${value})(?=[\\\\"'\x60])`)
    : new RegExp(`(${lead}${opened})(${value})${ends}`)
}

/** A value of a given shape that is assigned to something with the name of the vendor. */
function vendorFamily(name: string, names: string[], value: string): SecretFamily[] {
  const anchors = anyCase(names)
  const lead = String.raw`[A-Za-z0-9_.-]{2,60}${assigns}${opened}`
  return [
    {
      name,
      anchors,
      pattern: new RegExp(`(${lead})(${value})`),
      nameShape: newShape({ hasDots: true, maxLength: 60, isToken: true, minValueLength: 32 }),
      check: (secret) => /\d/.test(secret) && !isPlaceholder(secret),
    },
  ]
}

/** `api key` in all spellings of code: api_key, API_KEY, apiKey, ApiKey, api-key, apikey. */
function anyCase(names: readonly string[]): string[] {
  const forms = names.flatMap((name) => {
    const words = name.split(' ')
    const capitals = words.map((word) => word.slice(0, 1).toUpperCase() + word.slice(1))
    const joined = ['', '_', '-', ' '].flatMap((joint) => [
      words.join(joint),
      words.join(joint).toUpperCase(),
      capitals.join(joint),
    ])
    return [...joined, [words[0], ...capitals.slice(1)].join('')]
  })
  return [...new Set(forms)].filter((form) => !form.includes(' ') || names.every((name) => name.includes(' ')))
}
