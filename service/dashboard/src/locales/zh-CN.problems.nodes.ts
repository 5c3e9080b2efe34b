/** Jobs that no node could ever run. */
export const fit = {
  sentences: "{first}；{second}",
  "no-node-could": "{field}：没有节点能运行此作业：{what}。{mend}，或添加节点。",
  "no-nodes-could": "{field}：没有足够的节点能运行此作业：{what}。{mend}，或添加节点。",
  "ask-less": "请减少申请",
  "take-auto": "请取 backend: auto，它会选出合适的",
  "leave-network": "请去掉 network",
  "lacking-node": "节点 {node} {lack}",
  "few-nodes": "作业需要 {needed} 个同类节点，而能容纳它一部分的只有 {found} 个",
  "nodes-by-sort": "带 GPU 的 {gpus} 个、带 CPU 槽位的 {slots}",
  "few-cores": "有 {found} 个 CPU 核，作业需要 {needed} 个",
  "few-gpus": "有 {found} 个 GPU，作业需要 {needed} 个",
  "few-gpus-of": "有 {found} 个 GPU（{sort}），作业需要 {needed} 个",
  "few-slots": "有 {found} 个 CPU 槽位，作业需要 {needed} 个",
  "few-slots-of": "有 {found} 个 CPU 槽位（{sort}），作业需要 {needed} 个",
  "little-memory": "有 {found} 内存，作业需要 {needed}",
  "gpu-type": "型号 {type}",
  "gpu-memory": "显存不少于 {memory}",
  "gpu-type-memory": "型号 {type}，显存不少于 {memory}",
  "lacks-account": "不运行该用户的作业，因为该用户没有 UNIX 账户",
  "lacks-gpus": "没有 GPU，而 NCCL 需要 GPU",
  "lacks-labels": "没有标签 {labels}",
  "lacks-network": "无法为作业提供独立网络：它的 worker 不是 root、版本太旧，或内核不允许",
};

/** Users whose jobs nodes refuse. */
export const accounts = {
  "the-node": "节点 {node}",
  "the-nodes": "节点 {nodes}",
  "account-none": "{user} 没有 UNIX 账户，因此{where} 不会运行其任何作业：管理员可用 `yard users set {user} --unix-user ACCOUNT` 指定账户；若所有用户都可以用 worker 自身的 UNIX 用户身份运行，也可用 TORCHYARD_ONE_TRUST_DOMAIN=1 启动 worker",
  "account-absent": "{user} 的 UNIX 账户 {account} 在{where} 上不存在，或无权进入那里的尝试目录：管理员可在那里创建账户、授予访问权限（位置见 worker 日志），或用 `yard users set {user} --unix-user ACCOUNT` 指定其他账户",
  "account-foreign": "{where} 上的 worker 无法切换为 {user} 的 UNIX 账户 {account}：管理员可用 root 运行它；若所有用户都可以用 worker 自身的 UNIX 用户身份运行，也可设置 TORCHYARD_ONE_TRUST_DOMAIN=1",
  "account-root": "{user} 的作业在{where} 上会以 root 身份运行，而那里的 worker 拒绝这样做：管理员可用 `yard users set {user} --unix-user ACCOUNT` 指定其他账户，或用 TORCHYARD_ROOT_JOBS=1 启动 worker",
  "account-untold": "{where} 尚未报告能否以 {user} 的 UNIX 账户 {account} 运行作业",
  "account-deactivated": "{user} 已停用，因此没有节点会启动其作业：管理员可取消这些作业，或用 `yard users set {user} --active` 重新启用该用户",
};

/** Quotas, the policy, reservations and nodes. */
export const sharing = {
  "the-user": "用户 {name}",
  "the-project": "项目 {name}",
  "quota-queued": "{who} 最多可有 {most} 个等待中的作业，现有 {waiting} 个，容不下另外 {more} 个：请等一些作业启动，或取消一些，或请管理员执行 `yard quota set {kind} {name} --max-queued {needed}`",
  "quota-storage": "{who} 的作业在存储中占用 {held}，而最多可占用 {most}：请丢弃不再需要的内容（`yard discard`、`yard discard --code`），或请管理员执行 `yard quota set {kind} {name} --max-storage SIZE`",
  "policy-oracle": "{order} 需要预知未来，只用于 `yard simulate`：请取 {usable} 之一",
  "what-if-nothing": "最近 {weeks} 周提交、用到 GPU 且节点能容纳的作业，没有一个已经结束：请增加周数",
  "what-if-busy": "此刻正在推演另一项更改：请一分钟后再试。",
  "what-if-long": "weeks：推演需要超过 {longest} 秒：请减少周数。",
  "simulator-failed": "模拟器出错：见服务的日志。",
  "reservations-conflict": "{why}：请减少申请，或另选时间（`yard reservations` 会列出预留）",
  "node-reserved": "{node} 从 {start} 到 {end} 已为“{name}”预留",
  "nodes-reserved": "{nodes} 从 {start} 到 {end} 已为“{name}”预留",
  "reserve-fewer": "申请了 {wanted} 个 GPU，而从 {start} 到 {end} 的 {all} 个 GPU 中只有 {free} 个未被预留",
  "node-in-maintenance": "节点 {node} 正在维护（“{name}”），直到 {end}：可用 `yard reservations --cancel {id}` 结束维护。",
  "node-heard": "节点 {node} 仍有响应：请排空它，或取消它的作业",
  "device-in-use": "节点 {node} 的设备 {device} 并未因故障停用：见 `yard nodes`",
  "invitation-of-other": "此邀请属于节点 {node}，而不是 {name}：请用 --name {node} 启动。",
  "invitation-used": "此邀请已用过：请申请新的邀请。",
};
