import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** A machine with an address of its own. */
export interface Machine {
  name: string
  address: string
  /** Programs start there behind these words. */
  enter: readonly string[]
}

/**
 * Machines that are connected by a switch, each a network namespace. This process has an address, too. It needs mount and network
 * namespaces of its own: all machines end with it.
 */
export class Network {
  readonly #folder: string
  readonly #machines = new Map<string, Machine>()

  /** Files that hold the namespaces are in the folder. */
  constructor(folder: string) {
    this.#folder = folder
    ip('link', 'set', 'lo', 'up')
    ip('link', 'add', 'switch', 'type', 'bridge')
    ip('link', 'set', 'switch', 'up')
    ip('address', 'add', `${network}.1/24`, 'dev', 'switch')
  }

  /** The address of this process. */
  get address(): string {
    return `${network}.1`
  }

  add(name: string): Machine {
    const file = join(this.#folder, `${name}.net`)
    const address = `${network}.${10 + this.#machines.size}`
    const machine = { name, address, enter: ['nsenter', `--net=${file}`] }
    this.#machines.set(name, machine)
    writeFileSync(file, '')
    execFileSync('unshare', [`--net=${file}`, 'true'])
    ip('link', 'add', name, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', file)
    ip('link', 'set', name, 'master', 'switch', 'up')
    inside(machine, 'link', 'set', 'lo', 'up')
    inside(machine, 'link', 'set', 'eth0', 'up')
    inside(machine, 'address', 'add', `${address}/24`, 'dev', 'eth0')
    return machine
  }

  /** Packets between the two get lost, and neither is told. */
  cut(one: Machine, other: Machine): void {
    for (const [from, to] of [
      [one, other],
      [other, one],
    ] as const) {
      inside(from, 'neighbour', 'replace', to.address, 'lladdr', nobody, 'dev', 'eth0', 'nud', 'permanent')
    }
  }

  mend(one: Machine, other: Machine): void {
    for (const [from, to] of [
      [one, other],
      [other, one],
    ] as const) {
      inside(from, 'neighbour', 'del', to.address, 'dev', 'eth0')
    }
  }
}

/** Of our own namespace: no other one knows these addresses. */
const network = '10.77.0'
/** The hardware address of no machine. */
const nobody = '02:00:00:00:00:01'

function ip(...words: string[]): void {
  execFileSync('ip', words)
}

function inside({ enter: [program = '', ...words] }: Machine, ...command: string[]): void {
  execFileSync(program, [...words, 'ip', ...command])
}
