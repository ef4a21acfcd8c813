/** One instruction of a container file. */
export interface Step {
  instruction: string
  /** Its text without the options, such as `--interval=15s`, and without line continuations. */
  text: string
  options: string[]
  /** The words of the exec form; empty for other forms. */
  args: string[]
}

export function stepsOf(file: string): Step[] {
  const lines = file
    .replaceAll(/^\s*#.*$/gm, '')
    .replaceAll(/\\\n/g, ' ')
    .split('\n')
  return lines.flatMap((line) => {
    const [, instruction = '', rest = ''] = /^\s*([A-Z]+)\s+(.*)$/.exec(line) ?? []
    return instruction === '' ? [] : [stepOf(instruction, rest.trim())]
  })
}

function stepOf(instruction: string, rest: string): Step {
  const [, leading = '', after = ''] = /^((?:--[\w-]+=\S+\s+)*)(.*)$/s.exec(rest) ?? []
  const isHealth = instruction === 'HEALTHCHECK'
  const text = (isHealth ? after.replace(/^CMD\s+/, '') : after).replaceAll(/\s+/g, ' ')
  const args = text.startsWith('[') ? (JSON.parse(text) as string[]) : []
  return { instruction, text, options: leading.trim().split(/\s+/).filter(Boolean), args }
}

/** Our rules for container files; those of hadolint that apply here, and that health is liveness. */
export function faultsOf(steps: readonly Step[]): string[] {
  const of = (instruction: string): Step[] => steps.filter((step) => step.instruction === instruction)
  const [from] = of('FROM')
  const [user] = of('USER').slice(-1)
  const [command, ...otherCommands] = of('CMD')
  const [health] = of('HEALTHCHECK')
  const apt = of('RUN').filter(({ text }) => text.includes('apt-get install'))
  const rules: [isKept: boolean, fault: string][] = [
    [/:\d+\.\d+[\w.-]*$|@sha256:/.test(from?.text ?? ''), 'The base image has no fixed version.'],
    [user !== undefined && !/^(?:root|0)\b/.test(user.text), 'The last user is root.'],
    [/^\d+:\d+$/.test(user?.text ?? ''), 'The user is not numeric, so Kubernetes cannot check that it is not root.'],
    [of('ADD').length === 0, 'ADD unpacks and downloads; use COPY.'],
    [of('RUN').every(({ text }) => !/\bsudo\b|\bcd \//.test(text)), 'A step uses sudo, or cd instead of WORKDIR.'],
    [
      apt.every(({ text }) => text.includes('--no-install-recommends')),
      'apt-get installs packages that are not needed.',
    ],
    [apt.every(({ text }) => text.includes('rm -rf /var/lib/apt/lists')), 'The lists of apt-get stay in the image.'],
    [apt.every(({ text }) => text.startsWith('apt-get update')), 'apt-get installs from old lists.'],
    [of('ENV').every(({ text }) => !/key|token|secret|password/i.test(text)), 'A secret is in the environment.'],
    [of('WORKDIR').every(({ text }) => text.startsWith('/')), 'A WORKDIR is relative.'],
    [
      command !== undefined && otherCommands.length === 0 && command.args.length > 0,
      'There is not one CMD in exec form.',
    ],
    [
      command?.args.join(' ').includes('exec ') ?? false,
      'The shell stays in front of the server and takes its signals.',
    ],
    [health?.args.join(' ').includes("'/api/health'") ?? false, 'The health check is not liveness.'],
    [health?.options.some((option) => option.startsWith('--timeout=')) ?? false, 'The health check has no timeout.'],
    [steps.every(({ text }) => !/:latest\b|@latest\b/.test(text)), 'Something has the version latest.'],
  ]
  return rules.flatMap(([isKept, fault]) => (isKept ? [] : [fault]))
}
