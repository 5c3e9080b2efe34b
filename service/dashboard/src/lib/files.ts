import { t } from "@lingui/core/macro";

import type { Output } from "../api/types";

/** A folder of the files that a job has written, or one file in it. */
export interface FileNode {
  /** Its own name; a chain of folders with nothing else in them is one node, `runs/today`. */
  name: string;
  /** Bytes of all files below that are still there. */
  size: number;
  /** Files below that are still there. */
  count: number;
  file: Output | null;
  children: FileNode[];
}

/** The files of one root and node, as a tree. */
export interface FileTree {
  root: Output["root"];
  /** The node that wrote them, where the job has files of several. */
  node: string | null;
  top: FileNode;
}

const ROOTS: readonly Output["root"][] = ["output", "code", "job"];

/** One tree for each root and node, folders before files, both by name. */
export function fileTrees(outputs: readonly Output[]): FileTree[] {
  const ranks = [...new Set(outputs.map((output) => output.node_rank))].toSorted((one, other) => one - other);
  const several = ranks.length > 1;
  return ROOTS.flatMap((root) => ranks.map((rank) => ({ root, rank })))
    .map(({ root, rank }) => outputs.filter((output) => output.root === root && output.node_rank === rank))
    .flatMap((files) => treesOf(files, several));
}

function treesOf(files: readonly Output[], several: boolean): FileTree[] {
  const [first] = files;
  if (first === undefined) return [];
  const { node_rank: rank } = first;
  const node = several ? first.node ?? t`node ${rank}` : null;
  return [{ root: first.root, node, top: sum(treeOf(files)) }];
}

function treeOf(files: readonly Output[]): FileNode {
  const top = folder("");
  for (const file of files) {
    const parts = file.name.split("/");
    const name = parts.pop() ?? file.name;
    const parent = parts.reduce((at, part) => childFolder(at, part), top);
    parent.children.push({ ...folder(name), file });
  }
  return top;
}

function folder(name: string): FileNode {
  return { name, size: 0, count: 0, file: null, children: [] };
}

function childFolder(parent: FileNode, name: string): FileNode {
  const known = parent.children.find((child) => child.file === null && child.name === name);
  if (known !== undefined) return known;
  const made = folder(name);
  parent.children.push(made);
  return made;
}

/** Sizes and counts from the leaves up; folders that hold one folder alone are joined with it. */
function sum(node: FileNode): FileNode {
  if (node.file !== null) {
    const there = node.file.state !== "deleted";
    return { ...node, size: there ? node.file.size : 0, count: there ? 1 : 0 };
  }
  const children = node.children.map(sum).toSorted(byName);
  const [only] = children;
  if (node.name !== "" && children.length === 1 && only?.file === null) {
    return { ...only, name: `${node.name}/${only.name}` };
  }
  const size = children.reduce((all, child) => all + child.size, 0);
  return { ...node, children, size, count: children.reduce((all, child) => all + child.count, 0) };
}

function byName(one: FileNode, other: FileNode): number {
  const folders = Number(one.file !== null) - Number(other.file !== null);
  return folders || one.name.localeCompare(other.name, undefined, { numeric: true });
}
