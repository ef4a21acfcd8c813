/** Secrets of every family, generated from the published formats, and texts to plant them in. */

/** The placeholder of the secret in a text. */
const here = '<here>'

export interface SecretShape {
  family: string
  /** `<hex:32>` is 32 random characters of a kind; the secret is between `{` and `}`, or everything without them. */
  shape: string
  /** The lines around a secret that is recognized only by its context. */
  contexts?: readonly string[]
}

const assignments = (name: string): string[] => [
  `${name}=${here}`,
  `export ${name}="${here}"`,
  `  ${name.toLowerCase()}: ${here}`,
  `{"${name.toLowerCase()}": "${here}", "n": 1}`,
  `const ${camel(name)} = '${here}';`,
  `"{\\"${name}\\":\\"${here}\\"}"`,
  `os.environ["${name}"] = "${here}"`,
]

export const secretShapes: readonly SecretShape[] = [
  { family: 'aws-access-key', shape: 'AKIA<upper:16>' },
  { family: 'aws-access-key', shape: 'ASIA<upper:16>' },
  { family: 'aws-secret-key', shape: '<base64:40>', contexts: assignments('AWS_SECRET_ACCESS_KEY') },
  { family: 'aws-session-token', shape: '<base64:356>', contexts: assignments('AWS_SESSION_TOKEN') },
  { family: 'aws-bedrock-key', shape: 'ABSK<base64:128>' },
  { family: 'github-token', shape: 'ghp_<alnum:36>' },
  { family: 'github-oauth-token', shape: 'gho_<alnum:36>' },
  { family: 'github-app-token', shape: 'ghs_<alnum:36>' },
  { family: 'github-app-token', shape: 'ghu_<alnum:36>' },
  { family: 'github-refresh-token', shape: 'ghr_<alnum:76>' },
  { family: 'github-fine-grained-token', shape: 'github_pat_<alnum:22>_<alnum:59>' },
  { family: 'gitlab-token', shape: 'glpat-<base64url:20>' },
  { family: 'gitlab-token', shape: 'glpat-<base64url:27>.01.<lower:9>' },
  { family: 'gitlab-token', shape: 'gldt-<base64url:20>' },
  { family: 'gitlab-runner-token', shape: 'GR1348941<base64url:20>' },
  { family: 'anthropic-key', shape: 'sk-ant-api03-<base64url:93>AA' },
  { family: 'anthropic-key', shape: 'sk-ant-oat01-<base64url:86>' },
  { family: 'openrouter-key', shape: 'sk-or-v1-<hex:64>' },
  { family: 'openai-key', shape: 'sk-proj-<base64url:74>T3BlbkFJ<base64url:74>' },
  { family: 'openai-key', shape: 'sk-svcacct-<base64url:120>' },
  { family: 'openai-style-key', shape: 'sk-<alnum:48>' },
  { family: 'openai-style-key', shape: 'sk-<hex:32>' },
  { family: 'google-api-key', shape: 'AIza<base64url:34>7' },
  { family: 'google-auth-key', shape: 'AQ.Ab8<base64url:47>' },
  { family: 'google-oauth-token', shape: 'ya29.<base64url:120>' },
  { family: 'google-client-secret', shape: 'GOCSPX-<base64url:28>' },
  { family: 'google-refresh-token', shape: '1//0<base64url:98>' },
  { family: 'slack-token', shape: 'xoxb-<digits:12>-<digits:13>-<alnum:24>' },
  { family: 'slack-token', shape: 'xoxp-<digits:12>-<digits:12>-<digits:12>-<hex:32>' },
  { family: 'slack-app-token', shape: 'xapp-1-<upper:11>-<digits:13>-<hex:64>' },
  { family: 'slack-webhook', shape: 'https://hooks.slack.com/services/{T<upper:10>/B<upper:10>/<alnum:24>}' },
  { family: 'stripe-key', shape: 'sk_live_<alnum:24>' },
  { family: 'stripe-key', shape: 'rk_test_<alnum:99>' },
  { family: 'stripe-webhook-secret', shape: 'whsec_<alnum:32>' },
  { family: 'twilio-key', shape: 'SK<hex:32>' },
  { family: 'twilio-auth-token', shape: '<hex:32>', contexts: assignments('TWILIO_AUTH_TOKEN') },
  { family: 'sendgrid-key', shape: 'SG.<base64url:22>.<base64url:43>' },
  { family: 'mailgun-key', shape: 'key-<hex:32>' },
  { family: 'mailgun-key', shape: '<hex:32>-<hex:8>-<hex:8>', contexts: assignments('MAILGUN_API_KEY') },
  { family: 'mailchimp-key', shape: '<hex:32>-us14', contexts: assignments('MAILCHIMP_API_KEY') },
  { family: 'brevo-key', shape: 'xkeysib-<hex:64>-<alnum:16>' },
  { family: 'npm-token', shape: 'npm_<alnum:36>' },
  { family: 'pypi-token', shape: 'pypi-AgEIcHlwaS5vcmc<base64url:150>' },
  { family: 'rubygems-key', shape: 'rubygems_<hex:48>' },
  { family: 'crates-token', shape: 'cio<alnum:31>7' },
  { family: 'nuget-key', shape: 'oy2<lower:43>' },
  { family: 'clojars-token', shape: 'CLOJARS_<hex:60>' },
  { family: 'docker-hub-token', shape: 'dckr_pat_<base64url:27>' },
  { family: 'digitalocean-token', shape: 'dop_v1_<hex:64>' },
  { family: 'cloudflare-token', shape: '<base64url:39>7', contexts: assignments('CLOUDFLARE_API_TOKEN') },
  { family: 'cloudflare-origin-key', shape: 'v1.0-<hex:24>-<hex:146>' },
  { family: 'heroku-key', shape: 'HRKU-<base64url:60>' },
  {
    family: 'heroku-key',
    shape: '<hex:8>-<hex:4>-4<hex:3>-a<hex:3>-<hex:12>',
    contexts: assignments('HEROKU_API_KEY'),
  },
  { family: 'netlify-token', shape: 'nfp_<alnum:36>' },
  { family: 'vercel-token', shape: 'vcp_<alnum:55>7' },
  { family: 'fly-token', shape: 'fm2_<base64:180>' },
  {
    family: 'azure-storage-key',
    shape:
      'DefaultEndpointsProtocol=https;AccountName=store;AccountKey={<base64:86>==};EndpointSuffix=core.windows.net',
  },
  {
    family: 'azure-shared-access-signature',
    shape: 'https://a.blob.core.windows.net/c?sv=2024-11-04&ss=b&se=2027-01-01&sig={<alnum:20>%2B<alnum:21>%3D}',
  },
  { family: 'azure-client-secret', shape: '<alnum:3>8{Q~<base64url:33>7}' },
  { family: 'telegram-bot-token', shape: '<seven:10>:{AA<base64url:33>}' },
  { family: 'discord-bot-token', shape: 'MT<alnum:22>.{G<base64url:5>.<base64url:38>}' },
  { family: 'discord-webhook', shape: 'https://discord.com/api/webhooks/<seven:19>/{<base64url:68>}' },
  { family: 'shopify-token', shape: 'shpat_<hex:32>' },
  { family: 'square-token', shape: 'sq0csp-<base64url:43>' },
  { family: 'square-access-token', shape: 'EAAA<base64url:60>' },
  { family: 'braintree-token', shape: 'access_token$production$<lower:16>$<hex:32>' },
  { family: 'plaid-token', shape: 'access-production-<hex:8>-<hex:4>-<hex:4>-<hex:4>-<hex:12>' },
  { family: 'hugging-face-token', shape: 'hf_<alnum:34>' },
  { family: 'hugging-face-organisation-token', shape: 'api_org_<alnum:34>' },
  { family: 'replicate-token', shape: 'r8_<alnum:37>' },
  { family: 'groq-key', shape: 'gsk_<alnum:52>' },
  { family: 'xai-key', shape: 'xai-<alnum:80>' },
  { family: 'perplexity-key', shape: 'pplx-<alnum:48>' },
  { family: 'cerebras-key', shape: 'csk-<lower:48>' },
  { family: 'nvidia-key', shape: 'nvapi-<base64url:64>' },
  { family: 'together-key', shape: 'tgp_v1_<base64url:43>' },
  { family: 'fireworks-key', shape: 'fw_<alnum:23>7' },
  { family: 'elevenlabs-key', shape: 'sk_<hex:48>' },
  { family: 'pinecone-key', shape: 'pcsk_<alnum:6>_<alnum:63>' },
  { family: 'langsmith-key', shape: 'lsv2_pt_<hex:32>_<hex:10>' },
  { family: 'tavily-key', shape: 'tvly-<alnum:32>' },
  { family: 'firecrawl-key', shape: 'fc-<hex:32>' },
  { family: 'e2b-key', shape: 'e2b_<hex:40>' },
  { family: 'apify-token', shape: 'apify_api_<alnum:36>' },
  { family: 'mistral-key', shape: '<alnum:31>7', contexts: assignments('MISTRAL_API_KEY') },
  { family: 'cohere-key', shape: '<alnum:39>7', contexts: assignments('COHERE_API_KEY') },
  { family: 'algolia-key', shape: '<hex:32>', contexts: assignments('ALGOLIA_ADMIN_KEY') },
  { family: 'okta-token', shape: '00<base64url:40>', contexts: assignments('OKTA_API_TOKEN') },
  { family: 'snyk-token', shape: '<hex:8>-<hex:4>-4<hex:3>-a<hex:3>-<hex:12>', contexts: assignments('SNYK_TOKEN') },
  { family: 'airtable-token', shape: 'pat<alnum:14>.<hex:64>', contexts: assignments('AIRTABLE_TOKEN') },
  {
    family: 'datadog-key',
    shape: '<hex:32>',
    contexts: [...assignments('DD_API_KEY'), ...assignments('DATADOG_APP_KEY')],
  },
  { family: 'linear-key', shape: 'lin_api_<alnum:40>' },
  { family: 'notion-token', shape: 'ntn_<alnum:46>' },
  { family: 'notion-secret', shape: 'secret_<alnum:43>' },
  { family: 'figma-token', shape: 'figd_<base64url:40>' },
  { family: 'databricks-token', shape: 'dapi<hex:32>' },
  { family: 'new-relic-key', shape: 'NRAK-<upper:27>' },
  { family: 'new-relic-license', shape: '<hex:36>NRAL', contexts: assignments('NEW_RELIC_LICENSE_KEY') },
  { family: 'sentry-token', shape: 'sntrys_eyJ<base64:120>_<base64:43>' },
  { family: 'sentry-token', shape: 'sntryu_<hex:64>' },
  { family: 'grafana-token', shape: 'glsa_<alnum:32>_<hex:8>' },
  { family: 'grafana-token', shape: 'glc_<base64:120>' },
  { family: 'dynatrace-token', shape: 'dt0c01.<upper:24>.<upper:64>' },
  { family: 'posthog-key', shape: 'phx_<alnum:47>' },
  { family: 'vault-token', shape: 'hvs.<base64url:90>' },
  { family: 'terraform-token', shape: '<alnum:14>{.atlasv1.<base64url:67>}' },
  { family: 'pulumi-token', shape: 'pul-<hex:40>' },
  { family: 'doppler-token', shape: 'dp.pt.<alnum:43>' },
  { family: 'onepassword-token', shape: 'ops_eyJ<base64:250>' },
  { family: 'tailscale-key', shape: 'tskey-auth-<alnum:17>-<alnum:32>' },
  { family: 'postman-key', shape: 'PMAK-<hex:24>-<hex:34>' },
  { family: 'planetscale-token', shape: 'pscale_tkn_<base64url:43>' },
  { family: 'supabase-token', shape: 'sbp_<hex:40>' },
  { family: 'supabase-token', shape: 'sb_secret_<base64url:31>' },
  { family: 'atlassian-token', shape: 'ATATT3<base64url:182>=<upper:8>' },
  { family: 'dropbox-token', shape: 'sl.<base64url:140>' },
  { family: 'sonarqube-token', shape: 'squ_<hex:40>' },
  { family: 'buildkite-token', shape: 'bkua_<hex:40>' },
  { family: 'circleci-token', shape: 'CCIPAT_<alnum:22>_<hex:40>' },
  { family: 'artifactory-key', shape: 'AKCp<alnum:69>' },
  { family: 'mapbox-secret-token', shape: 'sk.eyJ1<base64url:70>.<base64url:22>' },
  { family: 'resend-key', shape: 're_<alnum:8>_<alnum:23>7' },
  { family: 'alibaba-access-key', shape: 'LTAI<alnum:19>7' },
  { family: 'contentful-token', shape: 'CFPAT-<base64url:43>' },
  { family: 'shippo-token', shape: 'shippo_live_<hex:40>' },
  { family: 'easypost-key', shape: 'EZAK<alnum:54>' },
  { family: 'readme-key', shape: 'rdme_<lower:70>' },
  { family: 'typeform-token', shape: 'tfp_<alnum:44>_<alnum:14>' },
  { family: 'age-secret-key', shape: 'AGE-SECRET-KEY-1<upper:58>' },
  // {"alg":"HS256","typ":"JWT"} and {"sub":"
  { family: 'json-web-token', shape: 'eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiI<base64url:120>.<base64url:43>' },
  {
    family: 'private-key',
    shape: '-----BEGIN RSA PRIVATE<space>KEY-----\n<lines:12>-----END RSA PRIVATE<space>KEY-----',
    contexts: [`${here}\n`, `key = """${here}"""`],
  },
  {
    family: 'private-key',
    shape: String.raw`-----BEGIN PRIVATE<space>KEY-----\n<base64:64>\n<base64:64>\n<base64:24>\n-----END PRIVATE<space>KEY-----`,
    contexts: [`{"private_key": "${here}\\n"}`, `PRIVATE_KEY="${here}"`],
  },
  {
    family: 'private-key',
    shape: '-----BEGIN OPENSSH PRIVATE<space>KEY-----\n<lines:7>',
    contexts: [`$ head -8 id_ed25519\n${here}$ ls`],
  },
  {
    family: 'url-password',
    shape: '<alnum:14>',
    contexts: [
      `DATABASE_URL=postgres://app:${here}@db.internal:5432/app`,
      `git clone https://build:${here}@git.internal/x.git`,
      `redis://:${here}@cache:6379/0`,
      `{"url":"amqps://u:${here}@mq/vhost"}`,
    ],
  },
  { family: 'url-token', shape: '<alnum:31>7', contexts: [`https://${here}@git.internal/x.git`] },
  {
    family: 'bearer-token',
    shape: '<base64url:39>7',
    contexts: [
      `curl -H "Authorization: Bearer ${here}" https://api.internal`,
      `'Bearer ${here}'`,
      `authorization: Bearer ${here}`,
    ],
  },
  {
    family: 'basic-credentials',
    shape: '<credentials:20>',
    contexts: [`Authorization: Basic ${here}`, `headers: { Authorization: 'Basic ${here}' }`],
  },
  {
    family: 'authorization-header',
    shape: '<alnum:39>7',
    contexts: [`Authorization: Token ${here}`, `"authorization": "${here}"`],
  },
  {
    family: 'command-line-password',
    shape: '<alnum:12>!7a',
    contexts: [`curl -u admin:${here} https://x`, `sshpass -p ${here} ssh h`],
  },
  { family: 'netrc-password', shape: '<alnum:20>', contexts: [`machine git.internal login ci password ${here}`] },
  {
    family: 'sql-password',
    shape: '<alnum:16>',
    contexts: [`CREATE USER app IDENTIFIED BY '${here}';`, `ALTER ROLE app WITH PASSWORD '${here}';`],
  },
  {
    family: 'password',
    shape: '<alnum:10>7!a',
    contexts: [
      ...assignments('DB_PASSWORD'),
      ...assignments('SMTP_PASS'),
      `Server=db;Database=app;User Id=sa;Password=${here};Encrypt=true`,
      `<password>${here}</password>`,
      `<add key="password" value="x"/> pwd: '${here}'`,
    ],
  },
  {
    family: 'secret',
    shape: '<alnum:31>7',
    contexts: [
      ...assignments('CLIENT_SECRET'),
      ...assignments('SESSION_SECRET'),
      ...assignments('INTERNAL_API_KEY'),
      ...assignments('DEPLOY_TOKEN'),
      ...assignments('ENCRYPTION_KEY'),
      `deploy --token ${here} --force`,
      `https://api.internal/v1?api_key=${here}&x=1`,
      `x-api-key: ${here}`,
      `//npm.internal/:_authToken=${here}`,
    ],
  },
  { family: 'secret', shape: '<hex:40>', contexts: [...assignments('WEBHOOK_SECRET'), ...assignments('APP_KEY')] },
  { family: 'secret', shape: '<base64:43>=', contexts: [...assignments('JWT_SECRET'), ...assignments('MASTER_KEY')] },
]

/** Contexts for a secret that is recognized by its own shape. */
const anywhere: readonly string[] = [
  ...assignments('SERVICE_VALUE'),
  here,
  `I have put the key ${here} into the file.`,
  `  - ${here}`,
  `curl https://api.internal/v1?k=${here}&page=2`,
  `X-Service: ${here}`,
  `call(${here})`,
  `<value>${here}</value>`,
  `line one\\n${here}\\nline three`,
  `\u001b[32m${here}\u001b[0m`,
  `+${here}`,
  `| name | ${here} |`,
]

const alphabets: Record<string, string> = {
  digits: '0123456789',
  seven: '7',
  hex: '0123456789abcdef',
  lower: 'abcdefghijklmnopqrstuvwxyz0123456789',
  upper: 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567',
  alnum: 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789',
  base64: 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/',
  base64url: 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_',
}

export interface PlantedSecret {
  family: string
  text: string
  /** The text that must not remain. */
  secret: string
}

/** One secret of the shape, in one of its contexts. */
export function plant({ family, shape, contexts = anywhere }: SecretShape, random: () => number): PlantedSecret {
  const made = fill(shape, random)
  const secret = /\{([^]*)\}/.exec(made)?.[1] ?? made
  const text = pick(contexts, random).replace(here, () => made.replaceAll(/[{}]/g, ''))
  return { family, text, secret }
}

export function pick<T>(list: readonly T[], random: () => number): T {
  return list[Math.floor(random() * list.length)] as T
}

function fill(shape: string, random: () => number): string {
  return shape.replaceAll(/<(\w+)(?::(\d+))?>/g, (_, kind: string, count = '1') => {
    if (kind === 'space') return ' '
    if (kind === 'lines')
      return Array.from({ length: Number(count) }, () => `${letters('base64', 64, random)}\n`).join('')
    if (kind === 'credentials') return Buffer.from(`user:${letters('alnum', Number(count), random)}`).toString('base64')
    return letters(kind, Number(count), random)
  })
}

function letters(kind: string, count: number, random: () => number): string {
  const alphabet = alphabets[kind]
  if (alphabet === undefined) throw new Error(`There is no alphabet ${kind}`)
  return Array.from({ length: count }, () => pick([...alphabet], random)).join('')
}

function camel(name: string): string {
  return name.toLowerCase().replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase())
}
