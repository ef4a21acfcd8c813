// The files of deploy/cluster: Kubernetes and Compose are not here, so what they would refuse is found in other ways.
import { Metrics } from '@tapetree/server'
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { Script } from 'node:vm'
import { describe, expect, onTestFinished, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'

const execute = promisify(execFile)
const root = resolve(import.meta.dirname, '../..')
const read = (name: string): Promise<string> => readFile(join(root, 'deploy/cluster', name), 'utf8')

interface Manifest {
  apiVersion: string
  kind: string
  metadata: { name: string }
  spec: Record<string, unknown>
}

const manifestsOf = (text: string): Manifest[] => parseAllDocuments(text).map((document) => document.toJS() as Manifest)

/** The names of manifests that are no objects of Kubernetes, by its published types. */
async function faultyIn(manifests: readonly Manifest[]): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'tapetree-manifests-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
  const files = manifests.map((_, index) => `manifest-${index}.ts`)
  for (const [index, manifest] of manifests.entries()) {
    const { apiVersion, kind } = manifest
    const group = apiVersion.includes('/') ? apiVersion.replace('.k8s.io', '') : `core/${apiVersion}`
    const text = `import type { ${kind} } from 'kubernetes-types/${group}'\nexport const manifest: ${kind} = ${JSON.stringify(manifest)}\n`
    await writeFile(join(folder, `manifest-${index}.ts`), text)
  }
  const compilerOptions = {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    module: 'esnext',
    moduleResolution: 'bundler',
  }
  await writeFile(
    join(folder, 'tsconfig.json'),
    JSON.stringify({ compilerOptions: { ...compilerOptions, types: [] }, files }),
  )
  const said = await execute(join(root, 'node_modules/.bin/tsc'), ['-p', folder, '--pretty', 'false']).then(
    () => '',
    ({ stdout }: { stdout: string }) => stdout,
  )
  const faulty = new Set([...said.matchAll(/manifest-(\d+)\.ts/g)].map(([, index]) => Number(index)))
  return [...faulty].map((index) => `${manifests[index]?.kind} ${manifests[index]?.metadata.name}`)
}

/** The options of `tapetree serve`, from its page. */
async function knownOptions(): Promise<Set<string>> {
  const page = await readFile(join(root, 'docs/reference/commands.md'), 'utf8')
  const section = page.slice(page.indexOf('## tapetree serve\n'), page.indexOf('## tapetree attach\n'))
  return new Set([...section.matchAll(/`(?:-\w, )?(--[\w-]+)/g)].map(([, option]) => option ?? ''))
}

const optionsIn = (text: string): string[] => [...text.matchAll(/^\s*- (--[\w-]+)/gm)].map(([, option]) => option ?? '')

describe('the manifests for Kubernetes', () => {
  test('are objects of Kubernetes, and an error in them would be noticed', async () => {
    const text = await read('kubernetes.yaml')
    expect(await faultyIn(manifestsOf(text))).toEqual([])
    const broken = [
      text.replace('livenessProbe:', 'livenessprobe:'),
      text.replace('minAvailable: 2', 'minimumAvailable: 2'),
      text.replace('containerPort: 8787', "containerPort: '8787'"),
      text.replace('kind: Job', 'kind: Jobs'),
    ]
    expect(await faultyIn(broken.flatMap(manifestsOf))).toEqual([
      'Deployment tapetree',
      'PodDisruptionBudget tapetree',
      'Deployment tapetree',
      'Jobs tapetree-migrate-0-1-0',
    ])
  }, 60_000)

  test('select the pods that they make, and name the ports that those have', async () => {
    const manifests = manifestsOf(await read('kubernetes.yaml'))
    type Pods = { metadata: { labels: object }; spec: { containers: { ports: { name: string }[] }[] } }
    const pods = manifests.filter(({ kind }) => kind === 'Deployment').map(({ spec }) => spec['template'] as Pods)
    const made = pods.map(({ metadata }) => JSON.stringify(metadata.labels))
    const ports = pods.flatMap(({ spec }) => spec.containers.flatMap((each) => each.ports.map(({ name }) => name)))
    for (const { kind, spec } of manifests) {
      const { selector, podSelector } = spec as Record<string, { matchLabels?: object } | undefined>
      const wanted = kind === 'Service' ? selector : (selector ?? podSelector)?.matchLabels
      if (wanted) expect(made).toContain(JSON.stringify(wanted))
    }
    const named = [...(await read('kubernetes.yaml')).matchAll(/(?:targetPort|port): ([a-z]+)/g)].map(
      ([, port]) => port,
    )
    expect(new Set(named)).toEqual(new Set(ports))
  })

  test('start servers with options that there are', async () => {
    const known = await knownOptions()
    const used = optionsIn(await read('kubernetes.yaml'))
    expect(used).toContain('--node')
    expect(used.filter((option) => !known.has(option))).toEqual([])
  })
})

test('the servers of the file for Compose are asked for their health in the protocol that they speak', async () => {
  interface Server {
    command: string[]
    healthcheck: { test: string[] }
  }
  const { services } = parse(await read('compose.yaml'), { merge: true }) as { services: Record<string, Server> }
  for (const name of ['a', 'b']) {
    const { command = [], healthcheck } = services[name] ?? {}
    expect(command).toContain('--allow-insecure')
    const [how, program, flag, code = ''] = healthcheck?.test ?? []
    expect([how, program, flag]).toEqual(['CMD', 'node', '-e'])
    expect(code).toContain("require('http')")
    expect(() => new Script(code)).not.toThrow()
  }
})

test('the file for Compose names only what it declares, and options that there are', async () => {
  const text = await read('compose.yaml')
  interface Service {
    depends_on?: string[] | Record<string, unknown>
    secrets?: string[]
    volumes?: string[]
    configs?: { source: string }[]
  }
  type File = Record<'services' | 'secrets' | 'volumes' | 'configs', Record<string, unknown>>
  const file = parse(text, { merge: true }) as File
  for (const service of Object.values(file.services) as Service[]) {
    const { depends_on: needed = [], secrets = [], volumes = [], configs = [] } = service
    expect(Object.keys(file.services)).toEqual(
      expect.arrayContaining(Array.isArray(needed) ? needed : Object.keys(needed)),
    )
    expect(Object.keys(file.secrets)).toEqual(expect.arrayContaining(secrets))
    expect(Object.keys(file.volumes)).toEqual(expect.arrayContaining(volumes.map((each) => each.split(':')[0])))
    expect(Object.keys(file.configs)).toEqual(expect.arrayContaining(configs.map(({ source }) => source)))
  }
  const known = await knownOptions()
  const used = optionsIn(text)
  expect(used.filter((option) => option === '--node')).toHaveLength(2)
  expect(used.filter((option) => !known.has(option))).toEqual([])
})

describe('the alerts', () => {
  const hasPromtool = existsSync('/usr/bin/promtool')
  if (!hasPromtool) console.log('promtool is not installed in /usr/bin, so the alerts are not tried.')

  test('are about figures that a server has', async () => {
    const metrics = new Metrics(new Map())
    onTestFinished(() => metrics.close())
    const told = await metrics.metricsText()
    const named = [...(await read('alerts.yaml')).matchAll(/tapetree_\w+/g)].map(([name]) => name)
    expect(named.length).toBeGreaterThan(4)
    for (const name of named) expect(told).toContain(`# HELP ${name} `)
  })

  test.skipIf(!hasPromtool)('are raised when they should be, and only then', async () => {
    const { stdout } = await execute('promtool', ['test', 'rules', join(root, 'deploy/cluster/alerts.test.yaml')])
    expect(stdout).toContain('SUCCESS')
    const [alerts, tests] = [await read('alerts.yaml'), await read('alerts.test.yaml')]
    for (const [, name] of alerts.matchAll(/- alert: (\w+)/g)) expect(tests).toContain(`alertname: ${name}\n`)
  })
})
