import type { Manifest, PackedPackage } from './packages.ts'

const repository = 'git+https://github.com/tapetree/tapetree.git'

/** Everything that would make a published package incomplete or hard to install. One sentence for each problem. */
export function packageProblems(packed: readonly PackedPackage[]): string[] {
  const versions = new Set(packed.map(({ manifest }) => manifest.version))
  return [
    ...(versions.size > 1 ? [`The packages have different versions: ${[...versions].join(', ')}.`] : []),
    ...packed.flatMap((each) =>
      [...manifestProblems(each.manifest), ...fileProblems(each)].map((problem) => `${each.manifest.name} ${problem}.`),
    ),
  ]
}

/** Programs are installed with the versions that they were tested with; libraries leave the choice to their users. */
export function manifestProblems(manifest: Manifest): string[] {
  const isProgram = manifest.bin !== undefined
  return [
    ...(['description', 'keywords', 'homepage', 'bugs', 'license'] as const).flatMap((field) =>
      manifest[field] === undefined ? [`has no ${field}`] : [],
    ),
    ...(manifest.repository?.url === repository ? [] : ['does not name the repository']),
    ...(manifest.publishConfig?.access === 'public' ? [] : ['would not be public']),
    ...(manifest.publishConfig?.provenance === true ? [] : ['would be published without provenance']),
    ...['preinstall', 'install', 'postinstall', 'prepare']
      .filter((script) => manifest.scripts?.[script] !== undefined)
      .map((script) => `has a ${script} script`),
    ...Object.entries({
      ...manifest.dependencies,
      ...manifest.optionalDependencies,
      ...manifest.peerDependencies,
    })
      .filter(([, range]) => isProgram !== /^\d/.test(range))
      .map(([name, range]) =>
        isProgram ? `depends on ${name} ${range}, not on an exact version` : `pins ${name} to ${range}`,
      ),
  ]
}

function fileProblems({ manifest, files }: PackedPackage): string[] {
  const needed = ['LICENSE', 'README.md', ...targetsOf(manifest.exports), ...Object.values(manifest.bin ?? {})]
  const shipped = new Set(files)
  return [
    ...needed.filter((file) => !shipped.has(file)).map((file) => `does not ship ${file}`),
    ...files
      .filter((file) => isForTests(file, manifest.exports))
      .map((file) => `ships ${file}, which is only for our tests`),
  ]
}

function targetsOf(exported: unknown): string[] {
  if (typeof exported === 'string') return [exported.replace(/^\.\//, '')]
  return typeof exported === 'object' && exported !== null ? Object.values(exported).flatMap(targetsOf) : []
}

/** The folder `testing` at the top of a package is public if an entry leads there. All others are for our tests. */
function isForTests(file: string, exported: unknown): boolean {
  if (/\.test\.|\.tsbuildinfo$|^(?:src|dist)\/.+\/testing\//.test(file)) return true
  return /^(?:src|dist)\/testing\//.test(file) && !Object.hasOwn(Object(exported), './testing')
}
