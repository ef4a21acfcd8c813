/** Agents of others, which speak the Agent Client Protocol. */
export { AcpAgent, type AcpAgentOptions, type AgentProgram } from './acp/acp-agent.ts'
export { listAgents, type ListedAgent } from './acp/known-agents.ts'
